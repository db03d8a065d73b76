import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import beam_search, greedy_search
from kseq.decoding.penalized_scores import penalized_scores


def test_beam_of_one_is_greedy_search(make_model, source_ids, in_graph):
    model, limits = make_model(), [6, 2, 9]

    beam = in_graph(beam_search, model, source_ids, limits, beam_size=1)
    greedy = in_graph(greedy_search, model, source_ids, limits)

    np.testing.assert_array_equal(beam.ids, greedy.ids)
    np.testing.assert_array_equal(beam.lengths, greedy.lengths)
    np.testing.assert_allclose(beam.scores, greedy.scores, rtol=1e-5)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_wide_beam_is_exhaustive_search(
    make_model, source_ids, in_graph, scores_of, length_penalty
):
    model, limit, n_best = make_model(vocab_size=6), 3, 20
    others = [1, 4, 5]
    finished = [
        [*tokens, END] + [PAD] * (limit - length - 1)
        for length in range(limit)
        for tokens in itertools.product(others, repeat=length)
    ]
    unfinished = [list(ids) for ids in itertools.product(others, repeat=limit)]

    best = in_graph(
        beam_search,
        model,
        source_ids,
        [limit] * 3,
        beam_size=40,
        length_penalty=length_penalty,
        n_best=n_best,
    )

    def ranked(answers):
        ids = tf.tile(tf.constant(answers, tf.int32)[None], (3, 1, 1))
        scores = scores_of(model, ids, length_penalty=length_penalty)
        order = tf.argsort(scores, direction="DESCENDING")
        return (
            tf.gather(ids, order, batch_dims=1),
            tf.gather(scores, order, batch_dims=1),
        )

    ids, scores = (
        tf.concat(pair, axis=1)[:, :n_best]
        for pair in zip(ranked(finished), ranked(unfinished), strict=True)
    )
    np.testing.assert_allclose(best.scores, scores, atol=1e-4)
    np.testing.assert_array_equal(best.ids, ids)


def test_scores_are_those_of_the_whole_sequences(
    make_model, source_ids, in_graph, scores_of
):
    model = make_model()

    best = in_graph(
        beam_search, model, source_ids, [6, 4, 9], length_penalty=0.6, n_best=4
    )

    expected = scores_of(model, best.ids, length_penalty=0.6)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


def test_item_alone_and_in_a_batch(make_model, source_ids, traced):
    search = traced(beam_search, make_model(), n_best=3)
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


def test_stopping_early_loses_nothing(make_model, source_ids, in_graph):
    model, limits = make_model(), [12, 12, 12]

    one = in_graph(beam_search, model, source_ids, limits, n_best=1)
    all_four = in_graph(beam_search, model, source_ids, limits, n_best=4)

    width = one.ids.shape[2]
    np.testing.assert_array_equal(one.ids[:, 0], all_four.ids[:, 0, :width])
    np.testing.assert_allclose(one.scores[:, 0], all_four.scores[:, 0])


def test_stops_when_no_live_hypothesis_can_win(make_model, source_ids):
    model = make_model(bias={END: 100.0})

    best = beam_search(model, source_ids, tf.fill((3,), 50))

    np.testing.assert_array_equal(best.ids, np.full((3, 1, 1), END))


def test_model_that_never_ends(make_model, source_ids, in_graph, scores_of):
    model = make_model(bias={END: -1e9})

    best = in_graph(beam_search, model, source_ids, [6, 4, 9], n_best=2)

    np.testing.assert_array_equal(best.lengths, [[6] * 2, [4] * 2, [9] * 2])
    expected = scores_of(model, best.ids)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


def test_pad_and_start_are_never_generated(make_model, source_ids, in_graph):
    model = make_model(bias={PAD: 50.0, START: 50.0})

    best = in_graph(beam_search, model, source_ids, [6, 4, 9], n_best=4)

    for ids, length in zip(
        best.ids.numpy().reshape(12, -1),
        best.lengths.numpy().ravel(),
        strict=True,
    ):
        assert not {PAD, START} & set(ids[:length])
        assert set(ids[length:]) <= {PAD}


@pytest.mark.parametrize("beam_size", [1, 4])
def test_length_limits_of_nothing_and_of_one(
    make_model, source_ids, in_graph, beam_size
):
    model, limits = make_model(), [0, 1, 0]

    best = in_graph(beam_search, model, source_ids, limits, beam_size=beam_size)

    np.testing.assert_array_equal(best.lengths, [[0], [1], [0]])
    np.testing.assert_array_equal(best.ids[0], [[PAD]])
    np.testing.assert_array_equal(tf.gather(best.scores, [0, 2]), [[0], [0]])

    nothing = in_graph(beam_search, model, source_ids, [0, 0, 0])
    assert nothing.ids.shape == (3, 1, 0)


def test_empty_batch(make_model, source_ids, in_graph):
    best = in_graph(beam_search, make_model(), source_ids[:0], [], n_best=2)

    assert best.ids.shape == (0, 2, 0)
    assert best.scores.shape == best.lengths.shape == (0, 2)


def test_more_answers_asked_for_than_there_are(
    make_model, source_ids, in_graph
):
    model = make_model(vocab_size=5)  # UNK, END and one more

    best = in_graph(
        beam_search, model, source_ids, [1] * 3, beam_size=9, n_best=5
    )

    np.testing.assert_array_equal(best.lengths, [[1, 1, 1, 0, 0]] * 3)
    np.testing.assert_array_equal(best.ids[:, 3:], np.zeros((3, 2, 1)))
    assert np.isfinite(best.scores[:, :3]).all()
    np.testing.assert_array_equal(best.scores[:, 3:], -math.inf)


def test_memory_is_never_copied(make_model, source_ids):
    model = make_model()
    memory = model.encode(source_ids)["memory"]
    seen = []

    class Watched:
        def encode(self, source_ids):
            return {**model.encode(source_ids), "memory": memory}

        def decode_step(self, token_ids, state):
            seen.append(state["memory"])
            return model.decode_step(token_ids, state)

    beam_search(Watched(), source_ids, tf.constant([3, 3, 3]))

    assert seen
    assert all(embeddings is memory[0] for embeddings, _ in seen)


def test_half_precision_logits_give_float32_scores(make_model, source_ids):
    model = make_model()
    step = model.decode_step

    def half_step(token_ids, state):
        logits, state = step(token_ids, state)
        return tf.cast(logits, tf.bfloat16), state

    model.decode_step = half_step
    best = beam_search(model, source_ids, tf.constant([6, 4, 9]))

    assert best.scores.dtype == tf.float32


def test_penalty_is_that_of_the_paper():
    scores = penalized_scores(tf.constant([-3.0, -3.0]), [1, 7], 0.5)
    np.testing.assert_allclose(scores, [-3.0, -3.0 / math.sqrt(2)], rtol=1e-6)


def test_bad_arguments(make_model, source_ids):
    model, limits = make_model(), tf.constant([6, 4, 9])
    with pytest.raises(ValueError, match="n_best=5, beam_size=4"):
        beam_search(model, source_ids, limits, n_best=5)
    with pytest.raises(ValueError, match="n_best=1, beam_size=0"):
        beam_search(model, source_ids, limits, beam_size=0)
    with pytest.raises(ValueError, match=r"length_penalty=-0\.5"):
        beam_search(model, source_ids, limits, length_penalty=-0.5)
