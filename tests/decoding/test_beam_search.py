import functools
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import BeamSearch, GreedySearch, NoRepeatedNgrams, Sampling
from kseq.decoding.hypotheses import penalized_scores
from tests.slow import slow


def test_beam_of_one_is_greedy_search(make_model, source_ids, searched):
    model, limits = make_model(), [6, 2, 9]

    beam = searched(BeamSearch(1), model, source_ids, limits)
    greedy = searched(GreedySearch(), model, source_ids, limits)

    np.testing.assert_array_equal(beam.ids, greedy.ids)
    np.testing.assert_array_equal(beam.lengths, greedy.lengths)
    np.testing.assert_allclose(beam.scores, greedy.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("length_penalty", "penalty_offset"),
    [(1.0, 5.0), slow(0.0, 5.0), slow(1.5, 0.0)],
)
def test_wide_beam_is_exhaustive_search(
    make_model,
    source_ids,
    searched,
    scores_of,
    length_penalty,
    penalty_offset,
):
    """Answers that the limit cuts compete by their scores."""
    model, limit, n_best = make_model(vocab_size=6), 3, 20
    others = [1, 4, 5]
    answers = [
        [*tokens, END] + [PAD] * (limit - length - 1)
        for length in range(limit)
        for tokens in itertools.product(others, repeat=length)
    ]
    answers += [list(ids) for ids in itertools.product(others, repeat=limit)]

    best = searched(
        BeamSearch(40, length_penalty, penalty_offset),
        model,
        source_ids,
        [limit] * 3,
        n_best=n_best,
    )

    ids = tf.tile(tf.constant(answers, tf.int32)[None], (3, 1, 1))
    scores = scores_of(
        model,
        ids,
        length_penalty=length_penalty,
        penalty_offset=penalty_offset,
    )
    scores, order = tf.math.top_k(scores, n_best)
    ids = tf.gather(ids, order, batch_dims=1)
    np.testing.assert_allclose(best.scores, scores, atol=1e-4)
    np.testing.assert_array_equal(best.ids, ids)


def test_scores_are_those_of_the_whole_sequences(
    make_model, source_ids, searched, scores_of
):
    model = make_model()

    best = searched(
        BeamSearch(length_penalty=0.6), model, source_ids, [6, 4, 9], n_best=4
    )

    expected = scores_of(model, best.ids, length_penalty=0.6)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


def test_item_alone_and_in_a_batch(make_model, source_ids, searched):
    search = functools.partial(searched, BeamSearch(), make_model(), n_best=3)
    limits = tf.constant([6, 1, 9])

    together = search(source_ids, limits)

    for i, length in enumerate([4, 2, 5]):
        alone = search(source_ids[i : i + 1, :length], limits[i : i + 1])
        width = alone.ids.shape[2]
        np.testing.assert_array_equal(
            together.ids[i : i + 1, :, :width], alone.ids
        )
        np.testing.assert_array_equal(together.ids[i, :, width:], PAD)
        np.testing.assert_allclose(
            together.scores[i : i + 1], alone.scores, atol=1e-4
        )


def test_stopping_early_loses_nothing(make_model, source_ids, searched):
    model, limits = make_model(), [12, 12, 12]

    one = searched(BeamSearch(), model, source_ids, limits, n_best=1)
    all_four = searched(BeamSearch(), model, source_ids, limits, n_best=4)

    width = one.ids.shape[2]
    np.testing.assert_array_equal(one.ids[:, 0], all_four.ids[:, 0, :width])
    np.testing.assert_allclose(
        one.scores[:, 0], all_four.scores[:, 0], atol=1e-5
    )


def test_stops_when_no_live_hypothesis_can_win(make_model, source_ids):
    model = make_model(bias={END: 100.0})

    best = BeamSearch()(model, {"source_ids": source_ids}, tf.fill((3,), 50))

    np.testing.assert_array_equal(best.ids, np.full((3, 1, 1), END))


def test_model_that_never_ends(make_model, source_ids, searched, scores_of):
    model = make_model(bias={END: -1e9})

    best = searched(BeamSearch(), model, source_ids, [6, 4, 9], n_best=2)

    np.testing.assert_array_equal(best.lengths, [[6] * 2, [4] * 2, [9] * 2])
    expected = scores_of(model, best.ids)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


def test_pad_and_start_are_never_generated(make_model, source_ids, searched):
    model = make_model(bias={PAD: 50.0, START: 50.0})

    best = searched(BeamSearch(), model, source_ids, [6, 4, 9], n_best=4)

    for ids, length in zip(
        best.ids.numpy().reshape(12, -1),
        best.lengths.numpy().ravel(),
        strict=True,
    ):
        assert not {PAD, START} & set(ids[:length])
        assert set(ids[length:]) <= {PAD}


@pytest.mark.parametrize("beam_size", [1, 4])
def test_length_limits_of_nothing_and_of_one(
    make_model, source_ids, searched, beam_size
):
    model, limits = make_model(), [0, 1, 0]

    best = searched(BeamSearch(beam_size), model, source_ids, limits)

    np.testing.assert_array_equal(best.lengths, [[0], [1], [0]])
    np.testing.assert_array_equal(best.ids[0], [[PAD]])
    np.testing.assert_array_equal(tf.gather(best.scores, [0, 2]), [[0], [0]])

    nothing = searched(BeamSearch(), model, source_ids, [0, 0, 0])
    assert nothing.ids.shape == (3, 1, 0)


def test_empty_batch(make_model, source_ids, searched):
    best = searched(BeamSearch(), make_model(), source_ids[:0], [], n_best=2)

    assert best.ids.shape == (0, 2, 0)
    assert best.scores.shape == best.lengths.shape == (0, 2)


def test_more_answers_asked_for_than_there_are(
    make_model, source_ids, searched
):
    model = make_model(vocab_size=5)  # UNK, END and one more

    best = searched(BeamSearch(9), model, source_ids, [1] * 3, n_best=5)

    np.testing.assert_array_equal(best.lengths, [[1, 1, 1, 0, 0]] * 3)
    np.testing.assert_array_equal(best.ids[:, 3:], np.zeros((3, 2, 1)))
    assert np.isfinite(best.scores[:, :3]).all()
    np.testing.assert_array_equal(best.scores[:, 3:], -math.inf)


def test_memory_is_never_copied(make_model, source_ids):
    model = make_model()
    inputs = {"source_ids": source_ids}
    memory = model.encode(inputs)["memory"]
    seen = []

    class Watched:
        def encode(self, inputs):
            return {**model.encode(inputs), "memory": memory}

        def decode_step(self, token_ids, state):
            seen.append(state["memory"])
            return model.decode_step(token_ids, state)

    BeamSearch()(Watched(), inputs, tf.constant([3, 3, 3]))

    assert seen
    for embeddings, _ in seen:  # that of all items, or of those not done
        is_copy = not np.shares_memory(
            *map(np.from_dlpack, (embeddings, memory[0]))
        )
        assert not is_copy or len(embeddings) < len(memory[0])


def test_half_precision_logits_give_float32_scores(make_model, source_ids):
    model = make_model()
    step = model.decode_step

    def half_step(token_ids, state):
        logits, state = step(token_ids, state)
        return tf.cast(logits, tf.bfloat16), state

    model.decode_step = half_step
    best = BeamSearch()(
        model, {"source_ids": source_ids}, tf.constant([6, 4, 9])
    )

    assert best.scores.dtype == tf.float32


def test_penalty_is_that_of_the_paper():
    scores = penalized_scores(tf.constant([-3.0, -3.0]), [1, 7], 0.5)
    np.testing.assert_allclose(scores, [-3.0, -3.0 / math.sqrt(2)], rtol=1e-6)


def test_penalty_without_offset_is_a_power_of_the_length():
    log_probs, lengths = tf.constant([-3.0, -3.0, 0.0]), [1, 4, 0]
    scores = penalized_scores(log_probs, lengths, 0.5, penalty_offset=0.0)
    np.testing.assert_allclose(scores, [-3.0, -1.5, 0.0], rtol=1e-6)


def test_inputs_are_of_any_kind(make_model, scores_of, seed):
    """Features with a mask; the batch size is that of the limits."""
    model, limits = make_model(), tf.constant([6, 4])
    inputs = {
        "source": tf.random.normal((2, 5, 6)),
        "source_mask": tf.sequence_mask([5, 2]),
    }
    for search in (BeamSearch(), GreedySearch(), Sampling()):
        best = search(model, inputs, limits)

        expected = scores_of(model, best.ids, inputs)
        np.testing.assert_allclose(best.scores, expected, atol=1e-4)

    cut = {name: tensor[1:, :2] for name, tensor in inputs.items()}
    alone = search(model, cut, limits[1:])
    width = alone.ids.shape[2]
    np.testing.assert_array_equal(best.ids[1:, :, :width], alone.ids)


def test_config():
    search = BeamSearch(8, patience=1.5, constraints=[NoRepeatedNgrams(3)])

    assert search.most_answers == 8
    assert search.get_config() == {
        "beam_size": 8,
        "length_penalty": 1.0,
        "penalty_offset": 5.0,
        "ctc_weight": 0.0,
        "patience": 1.5,
        "constraints": [{"n": 3}],
    }
    diverse = BeamSearch(8, num_groups=4, coverage_penalty=0.2)
    assert (
        diverse.get_config().items()
        >= {
            "num_groups": 4,
            "coverage_penalty": 0.2,
        }.items()
    )


@pytest.mark.parametrize(
    "kwargs",
    [
        {"beam_size": 0},
        {"beam_size": -1},
        {"beam_size": 4.0},
        {"beam_size": True},
        {"beam_size": 10**9},
        {"patience": 0},
        {"patience": -1.0},
        {"patience": math.nan},
        {"patience": math.inf},
        {"patience": "1"},
    ],
    ids=str,
)
def test_bad_fields(kwargs):
    (name, value), *_ = kwargs.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        BeamSearch(**kwargs)


@pytest.mark.parametrize("n_best", [0, 5, -1, 1.5])
def test_bad_n_best(make_model, source_ids, n_best):
    inputs = {"source_ids": source_ids}
    with pytest.raises(ValueError, match=f"from 1 to 4.*n_best={n_best}"):
        BeamSearch(4)(make_model(), inputs, [6, 4, 9], n_best=n_best)
