"""Beam search against its definition in plain Python, on random models."""

import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import BeamSearch, GreedySearch
from tests.slow import slow

MODELS, VOCAB, STEPS, BEAM = 150, 8, 12, 4
TOKENS = [token for token in range(VOCAB) if token not in (PAD, START)]


class TableModel:
    """Each item brings a model of its own: a table for every position.

    The logits are row `token` of the table (V, V) of the position. No two
    answers have equal probabilities, as they would with one table for all.
    """

    def encode(self, inputs):
        batch = tf.shape(inputs["tables"])[0]
        return {
            "memory": inputs["tables"],  # (B, T, V, V)
            "position": tf.zeros((batch,), tf.int32),
        }

    def decode_step(self, token_ids, state):
        tables, position = state["memory"], state["position"]
        rows = tf.range(tf.size(token_ids))
        items = rows // (tf.size(token_ids) // tf.shape(tables)[0])
        places = tf.stack([items, position, token_ids], axis=1)
        logits = tf.gather_nd(tables, places)
        return logits, {"memory": tables, "position": position + 1}


def penalized(log_prob, length, length_penalty, offset):
    return log_prob / ((offset + length) / (offset + 1)) ** length_penalty


def plain_beam(table, limit, penalty, patience=None):
    """(score, ids) of the finished hypotheses, best first, and the least gap.

    The definition, without a reason to stop before the limit but `patience`.
    The gap is that between the last one kept and the first one dropped.
    """
    live, finished, gap = [(0.0, (START,))], [], math.inf
    for length in range(1, limit + 1):
        extensions = sorted(
            (
                (log_prob + table[length - 1, ids[-1], token], (*ids, token))
                for log_prob, ids in live
                for token in TOKENS
            ),
            reverse=True,
        )
        alive = [pair for pair in extensions if pair[1][-1] != END]
        for ranking in (extensions, alive):
            for (kept, _), (dropped, _) in zip(
                ranking[BEAM - 1 : BEAM], ranking[BEAM : BEAM + 1], strict=False
            ):
                gap = min(gap, kept - dropped)
        finished += [
            (penalized(log_prob, length, *penalty), ids[1:])
            for log_prob, ids in extensions[:BEAM]
            if ids[-1] == END or length == limit
        ]
        live = alive[:BEAM]
        if patience and len(finished) >= math.ceil(patience * BEAM):
            break
    return sorted(finished, reverse=True), gap


def plain_greedy(table, limit, penalty):
    log_prob, ids = 0.0, (START,)
    while len(ids) <= limit and ids[-1] != END:
        row = table[len(ids) - 1, ids[-1]]
        token = max(TOKENS, key=lambda token, row=row: row[token])
        log_prob, ids = log_prob + row[token], (*ids, token)
    return penalized(log_prob, len(ids) - 1, *penalty), ids[1:]


def random_tables(seed, end_rate=None):
    """(MODELS, T, V, V) log-probabilities, from nearly flat to sharp."""
    random = np.random.default_rng(seed)
    sharpness = random.uniform(0.1, 3, size=(MODELS, 1, 1, 1))
    shape = (MODELS, STEPS, VOCAB, VOCAB)
    tables = np.exp(random.normal(size=shape) * sharpness)
    if end_rate is not None:
        tables[..., END] = 0
        tables /= tables.sum(-1, keepdims=True)
        tables[..., END] = end_rate / (1 - end_rate)
    tables = np.log(tables / tables.sum(-1, keepdims=True))
    return tables.astype("float32"), random.integers(1, STEPS + 1, MODELS)


def found_by(search, tables, limits, n_best=1, **options):
    """Eagerly: tracing a search takes longer than its twelve steps."""
    inputs = {"tables": tf.constant(tables)}
    limits = tf.constant(limits, tf.int32)
    return search(TableModel(), inputs, limits, n_best=n_best, **options)


@pytest.mark.parametrize(
    ("penalty", "patience", "end_rate"),
    [
        ((2.0, 5.0), None, None),
        ((1.0, 0.0), 2.0, 0.3),
        slow((0.0, 5.0), None, 0.02),
        slow((1.0, 5.0), 1.0, None),
        slow((1.0, 5.0), None, None),
        slow((1.0, 5.0), None, 0.02),
        slow((1.0, 0.0), None, 0.02),
        slow((1.0, 5.0), 0.01, None),
    ],
)
def test_same_as_in_plain_python(seed, penalty, patience, end_rate):
    """Stopping early loses nothing; without patience nor does the beam lose
    the greedy answer."""
    tables, limits = random_tables(seed, end_rate)
    n_best = 1 if patience == 0.01 else 3
    search = BeamSearch(BEAM, *penalty, patience)

    best = found_by(search, tables, limits, n_best)
    all_scores, all_ids, all_lengths = (
        each.numpy() for each in (best.scores, best.ids, best.lengths)
    )

    compared = 0
    for item, (table, limit) in enumerate(zip(tables, limits, strict=True)):
        expected, gap = plain_beam(table, limit, penalty, patience)
        if gap < 1e-5:  # rounding decides
            continue
        if patience is None:
            greedy = plain_greedy(table, limit, penalty)
            known = greedy[1] in [ids for _, ids in expected]
            expected = sorted(expected + [greedy] * (not known), reverse=True)
        expected = expected[:n_best]
        scores = [score for score, _ in expected]
        np.testing.assert_allclose(
            all_scores[item, : len(scores)], scores, atol=1e-4
        )
        assert (all_scores[item, len(scores) :] == -math.inf).all()
        if np.diff(scores, append=-math.inf).max() < -1e-5:
            ids = all_ids[item].tolist()
            lengths = all_lengths[item]
            found = [
                tuple(row[:length])
                for row, length in zip(ids, lengths, strict=True)
            ]
            assert found[: len(scores)] == [ids for _, ids in expected]
        compared += 1
    assert compared > 0.9 * MODELS


@pytest.mark.parametrize(
    ("beam_size", "end_rate"),
    [
        (4, 0.02),
        *(slow(2, None), slow(2, 0.02), slow(2, 0.3)),
        *(slow(4, None), slow(4, 0.3)),
        *(slow(9, None), slow(9, 0.02), slow(9, 0.3)),
    ],
)
def test_never_worse_than_greedy_search(seed, beam_size, end_rate):
    tables, limits = random_tables(seed, end_rate)

    greedy = found_by(GreedySearch(), tables, limits)
    beam = found_by(BeamSearch(beam_size), tables, limits)
    quick = found_by(BeamSearch(beam_size, patience=1.0), tables, limits)

    assert (beam.scores >= greedy.scores - 1e-5).numpy().all()
    assert (beam.scores >= quick.scores - 1e-5).numpy().all()


@pytest.mark.parametrize(
    ("beam_size", "end_rate"), [(4, 0.3), slow(2, None), slow(9, 0.02)]
)
def test_likely_lengths_lose_no_answer_that_is_as_short(
    seed, beam_size, end_rate
):
    tables, limits = random_tables(seed, end_rate)
    likely = tf.constant(limits // 2, tf.int32)

    greedy = found_by(GreedySearch(), tables, limits)
    whole = found_by(BeamSearch(beam_size), tables, limits)
    found = found_by(
        BeamSearch(beam_size), tables, limits, likely_lengths=likely
    )

    assert (found.scores >= greedy.scores - 1e-5).numpy().all()
    is_short = whole.lengths <= likely[:, None]
    assert ((found.scores >= whole.scores - 1e-5) | ~is_short).numpy().all()
    assert 0.02 < np.mean(is_short) < 0.98


def test_likely_lengths_end_a_search():
    """It reads no position after the one that ends the greedy answer."""
    tables = table_of(
        whatever_is_last(four=0.55, end=0.4),
        whatever_is_last(end=0.9, five=0.09),
    )  # no third position

    best = found_by(
        BeamSearch(2), tables, np.array([30]), likely_lengths=np.array([3])
    )

    np.testing.assert_array_equal(best.ids[0, 0], [4, END])
    with pytest.raises(tf.errors.InvalidArgumentError):
        found_by(BeamSearch(2), tables, np.array([30]))


def table_of(*positions):
    """(1, T, V, V): dicts (last token, next token) -> probability.

    What they leave out goes to PAD, which is never generated.
    """
    table = np.full((1, len(positions), VOCAB, VOCAB), 1e-9)
    for position, probabilities in enumerate(positions):
        for (last, token), probability in probabilities.items():
            table[0, position, last, token] = probability
    table[..., PAD] = 1 - table[..., PAD + 1 :].sum(-1)
    return np.log(table).astype("float32")


def whatever_is_last(**probabilities):
    names = {"end": END, "four": 4, "five": 5}
    return {
        (last, names[name]): probability
        for last in range(VOCAB)
        for name, probability in probabilities.items()
    }


def test_an_end_at_two_percent_a_step_does_not_hide_a_long_answer():
    """Four short answers finish before the one of ten tokens."""
    rows = [whatever_is_last(four=0.95, end=0.02, five=0.01)] * 9
    tables = table_of(*rows, whatever_is_last(end=0.97, four=0.02), *rows)
    limits = np.array([15])

    best = found_by(BeamSearch(), tables, limits)
    greedy = found_by(GreedySearch(), tables, limits)
    quick = found_by(BeamSearch(patience=1.0), tables, limits)

    np.testing.assert_array_equal(best.ids[0, 0, :10], [4] * 9 + [END])
    np.testing.assert_allclose(best.scores, greedy.scores, atol=1e-5)
    assert quick.lengths[0, 0] < 10
    assert quick.scores[0, 0] < best.scores[0, 0] - 0.5


def test_the_greedy_answer_survives_outside_of_the_beam():
    """Its second token drops it from a beam of two; then it is certain."""
    tables = table_of(
        {(START, 4): 0.4, (START, 5): 0.35, (START, 6): 0.2},
        {(4, 1): 0.24, (4, 7): 0.2, (5, 5): 0.5, (5, 6): 0.45},
        {(1, END): 0.99, (5, 7): 0.1, (6, 7): 0.1},
        {(7, 7): 0.1},
    )

    best = found_by(BeamSearch(2), tables, np.array([4]))
    beam_alone = found_by(BeamSearch(2, patience=99.0), tables, np.array([4]))

    np.testing.assert_array_equal(best.ids[0, 0], [4, 1, END])
    assert beam_alone.ids[0, 0, 0] == 5


def test_the_greedy_answer_is_awaited_when_the_beam_has_no_hope():
    """Its sum is above those of the beam that it dropped out of."""
    tables = table_of(
        {(START, 4): 0.4, (START, 5): 0.35, (START, 6): 0.2},
        {(4, 1): 0.24, (4, 7): 0.2, (5, 5): 0.5, (5, 6): 0.45},
        {(1, 7): 0.99, (5, END): 0.3, (5, 4): 0.01, (6, 4): 0.01},
        {(7, END): 0.99, (4, END): 0.99},
    )

    best = found_by(BeamSearch(2), tables, np.array([4]))
    beam_alone = found_by(BeamSearch(2, patience=99.0), tables, np.array([4]))

    np.testing.assert_array_equal(best.ids[0, 0], [4, 1, 7, END])
    np.testing.assert_array_equal(beam_alone.ids[0, 0], [5, 5, END])


def test_at_the_limit_a_better_live_answer_precedes_an_empty_one():
    tables = table_of(*[whatever_is_last(four=0.99, end=0.001)] * 5)

    best = found_by(BeamSearch(), tables, np.array([5]), n_best=2)

    np.testing.assert_array_equal(best.ids[0, 0], [4] * 5)
    expected = 5 * math.log(0.99) / (10 / 6)
    np.testing.assert_allclose(best.scores[0, 0], expected, atol=1e-5)


def test_the_bound_ends_a_search_before_its_limit():
    """It reads no position after the one that decides."""
    tables = table_of(
        whatever_is_last(four=0.9, five=0.05), whatever_is_last(end=0.99)
    )  # no third position

    best = found_by(BeamSearch(2), tables, np.array([3]))

    np.testing.assert_array_equal(best.ids[0, 0], [4, END])


def test_finished_answers_suffice_for_n_best_whatever_the_patience(seed):
    tables, _ = random_tables(seed, end_rate=0.3)
    limits = np.full(MODELS, STEPS)

    best = found_by(BeamSearch(4, patience=0.01), tables, limits, n_best=4)

    assert np.isfinite(best.scores).all()
    ids, lengths = best.ids.numpy(), best.lengths.numpy()
    last = np.take_along_axis(ids, lengths[..., None] - 1, axis=2)[..., 0]
    assert (last[lengths < STEPS] == END).all()
