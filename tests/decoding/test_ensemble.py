import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, START
from kseq.decoding import BeamSearch, Ensemble, GreedySearch, Sampling
from tests.decoding.conftest import TinyModel
from tests.models.seq2seq_systems import lstm, speech, transformer
from tests.slow import slow


def probabilities_of(model, source_ids, answer):
    """Of the tokens of an answer, given to a model one by one in NumPy."""
    state, found = model.encode({"source_ids": source_ids}), []
    for last, token in zip([START, *answer], answer, strict=False):
        logits, state = model.decode_step(tf.constant([last]), state)
        powers = np.exp(np.float64(logits[0]))
        found.append(powers[token] / powers.sum())
    return found


def test_wide_beam_is_exhaustive_search(seed, source_ids, searched):
    """Of the product, over the tokens, of the mean probability."""
    models = [TinyModel(seed, vocab_size=6), TinyModel(seed + 1, vocab_size=6)]
    limit, others = 3, [1, 4, 5]
    answers = [
        [*tokens, END]
        for length in range(limit)
        for tokens in itertools.product(others, repeat=length)
    ] + [list(ids) for ids in itertools.product(others, repeat=limit)]

    best = searched(
        BeamSearch(40, 0.0), Ensemble(models), source_ids, [limit] * 3
    )

    for item in range(3):
        rows = source_ids[item : item + 1]
        scores = [
            np.log(
                np.mean(
                    [probabilities_of(each, rows, answer) for each in models],
                    axis=0,
                )
            ).sum()
            for answer in answers
        ]
        expected = answers[int(np.argmax(scores))]
        found = best.ids[item, 0].numpy()
        assert found[: len(expected)].tolist() == expected
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
    models = Ensemble([transformer(), lstm("general", "feeding")])
    source_ids = tf.constant([[4, 5, 6, 3, 0], [9, 3, 0, 0, 0]])
    limits = tf.constant([6, 9])
    best = traced(search, models)(source_ids, limits)

    expected = scores_of(models, best.ids, {"source_ids": source_ids})
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)
    alone = traced(search, models)(source_ids[1:], limits[1:])
    length = int(alone.lengths[0, 0])
    np.testing.assert_array_equal(
        best.ids[1:, :, :length], alone.ids[:, :, :length]
    )


def test_scores_of_ctc_are_averaged_too(seed):
    source = {
        "source": tf.random.stateless_normal((2, 6, 3), [seed, 1]),
        "source_mask": tf.sequence_mask([6, 4]),
    }
    model, limits = speech(), tf.constant([5, 4])
    search = BeamSearch(2, ctc_weight=0.5)
    alone = search(model, source, limits)
    both = search(Ensemble([model, model]), source, limits)

    np.testing.assert_array_equal(both.ids, alone.ids)
    np.testing.assert_allclose(both.scores, alone.scores, atol=1e-4)


def test_attention_is_the_mean():
    models = [transformer(), lstm("dot")]
    inputs = {
        "source_ids": tf.constant([[4, 5, 6, 3]]),
        "target_ids": tf.constant([[START, 4, 7]]),
    }
    weights = Ensemble(models).attention_weights(inputs)

    expected = np.mean([each.attention_weights(inputs) for each in models], 0)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert Ensemble([*models, lstm("none")]).attention is None


def test_one_model_is_no_ensemble(make_model):
    with pytest.raises(ValueError, match="two models or more"):
        Ensemble([make_model()])
