import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import BeamSearch, Ensemble, GreedySearch, Sampling
from tests.decoding.conftest import TinyModel
from tests.models.seq2seq_systems import model_of
from tests.slow import slow


def probabilities_of(model, source_ids, answers):
    """Of the tokens of answers (N, T) to one source, in NumPy."""
    starts = np.full((len(answers), 1), START)
    inputs = {
        "source_ids": tf.repeat(source_ids, len(answers), axis=0),
        "target_ids": np.concatenate([starts, answers[:, :-1]], axis=1),
    }
    powers = np.exp(np.float64(model(inputs)))
    found = powers / powers.sum(axis=-1, keepdims=True)
    return np.take_along_axis(found, answers[..., None], axis=-1)[..., 0]


def test_wide_beam_is_exhaustive_search(seed, source_ids, searched):
    """Of the product, over the tokens, of the mean probability."""
    models = [TinyModel(seed, vocab_size=6), TinyModel(seed + 1, vocab_size=6)]
    limit, others = 3, [1, 4, 5]
    answers = [
        [*tokens, END] + [PAD] * (limit - length - 1)
        for length in range(limit)
        for tokens in itertools.product(others, repeat=length)
    ]
    answers += map(list, itertools.product(others, repeat=limit))
    answers = np.array(answers)

    best = searched(
        BeamSearch(40, 0.0), Ensemble(models), source_ids, [limit] * 3
    )

    for item in range(3):
        rows = source_ids[item : item + 1]
        both = [probabilities_of(each, rows, answers) for each in models]
        log_probs = np.log(np.mean(both, axis=0))
        scores = np.where(answers != PAD, log_probs, 0).sum(axis=1)
        expected = answers[scores.argmax()].tolist()
        found = best.ids[item, 0].numpy().tolist()
        assert found + [PAD] * (limit - len(found)) == expected
        np.testing.assert_allclose(best.scores[item, 0], max(scores), atol=1e-4)


@pytest.mark.parametrize(
    "search", [BeamSearch(3), GreedySearch(), Sampling(num_samples=3)]
)
def test_equal_models_answer_as_one_does(
    make_model, source_ids, searched, search
):
    model, limits = make_model(), [6, 2, 9]
    alone = searched(search, model, source_ids, limits)
    both = searched(search, Ensemble([model, model]), source_ids, limits)

    np.testing.assert_array_equal(both.ids, alone.ids)
    np.testing.assert_allclose(both.scores, alone.scores, atol=1e-4)


@pytest.mark.parametrize("search", [BeamSearch(3), slow(GreedySearch())])
def test_different_architectures_step_as_they_read_whole(
    traced, scores_of, search
):
    """A Transformer has shared caches, an LSTM states of its hypotheses."""
    models = Ensemble([model_of("transformer"), model_of("lstm")])
    source_ids = tf.constant([[4, 5, 6, 3, 0], [9, 3, 0, 0, 0]])
    limits = tf.constant([6, 9])
    search = traced(search, models)
    best = search(source_ids, limits)

    expected = scores_of(models, best.ids, {"source_ids": source_ids})
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)
    alone = search(source_ids[1:], limits[1:])
    length = int(alone.lengths[0, 0])
    np.testing.assert_array_equal(
        best.ids[1:, :, :length], alone.ids[:, :, :length]
    )


def test_scores_of_ctc_are_averaged_too(seed):
    source = {
        "source": tf.random.stateless_normal((2, 6, 3), [seed, 1]),
        "source_mask": tf.sequence_mask([6, 4]),
    }
    model, limits = model_of("speech"), tf.constant([5, 4])
    search = BeamSearch(2, ctc_weight=0.5)
    alone = search(model, source, limits)
    both = search(Ensemble([model, model]), source, limits)

    np.testing.assert_array_equal(both.ids, alone.ids)
    np.testing.assert_allclose(both.scores, alone.scores, atol=1e-4)


def test_attention_is_the_mean():
    models = [model_of("transformer"), model_of("dot, luong")]
    inputs = {
        "source_ids": tf.constant([[4, 5, 6, 3]]),
        "target_ids": tf.constant([[START, 4, 7]]),
    }
    weights = Ensemble(models).attention_weights(inputs)

    expected = np.mean([each.attention_weights(inputs) for each in models], 0)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert Ensemble([*models, model_of("no attention")]).attention is None


def test_models_of_other_vocabularies_are_refused(make_model, source_ids):
    models = [make_model(vocab_size=size) for size in (7, 8)]
    inputs = {"source_ids": source_ids}
    with pytest.raises(ValueError, match=r"same vocabulary .*\[7, 8\] of them"):
        BeamSearch()(Ensemble(models), inputs, [3, 3, 3])


def test_one_model_is_no_ensemble(make_model):
    with pytest.raises(ValueError, match="two models or more"):
        Ensemble([make_model()])
