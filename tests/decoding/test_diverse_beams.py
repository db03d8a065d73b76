"""Groups of a beam against their definition in plain Python."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, START
from kseq.decoding import BeamSearch
from tests.decoding.test_when_a_search_ends import (
    TOKENS,
    TableModel,
    penalized,
    random_tables,
)

GROUPS, EACH, DIVERSITY = 3, 2, 0.8
PENALTY = (1.0, 5.0)


def plain_groups(log_probs_of, limit, tokens=TOKENS):
    """(score, ids) of the best answers of each group, and the least gap.

    `log_probs_of` gives those of the token after some, the first one START.
    """
    live = [[(0.0, (START,))] for _ in range(GROUPS)]
    finished, gap = [[] for _ in range(GROUPS)], math.inf
    for length in range(1, limit + 1):
        chosen = []  # tokens of the groups before
        for group in range(GROUPS):
            extensions = sorted(
                (
                    (
                        log_prob
                        + log_probs_of(ids)[token]
                        - DIVERSITY * chosen.count(token),
                        log_prob + log_probs_of(ids)[token],
                        (*ids, token),
                    )
                    for log_prob, ids in live[group]
                    for token in tokens
                ),
                reverse=True,
            )
            alive = [each for each in extensions if each[2][-1] != END]
            for ranking in (extensions, alive):
                for kept, dropped in itertools.pairwise(ranking):
                    gap = min(gap, kept[0] - dropped[0])
            finished[group] += [
                (penalized(log_prob, length, *PENALTY), ids[1:])
                for _, log_prob, ids in extensions[:EACH]
                if ids[-1] == END or length == limit
            ]
            live[group] = [each[1:] for each in alive[:EACH]]
            chosen += [ids[-1] for _, ids in live[group]]
    best = [sorted(each, reverse=True)[:EACH] for each in finished]
    return sorted({pair for each in best for pair in each}, reverse=True), gap


def test_same_as_in_plain_python(seed):
    tables, limits = random_tables(seed, end_rate=0.2)
    tables, limits = tables[:40], limits[:40]
    search = BeamSearch(
        GROUPS * EACH, *PENALTY, num_groups=GROUPS, diversity=DIVERSITY
    )
    best = search(
        TableModel(),
        {"tables": tf.constant(tables)},
        tf.constant(limits, tf.int32),
        n_best=6,
    )

    compared = 0
    for item, (table, limit) in enumerate(zip(tables, limits, strict=True)):
        expected, gap = plain_groups(
            lambda ids, table=table: table[len(ids) - 1, ids[-1]], limit
        )
        if gap < 1e-5:  # rounding decides
            continue
        scores = [score for score, _ in expected]
        scores += [-math.inf] * (GROUPS * EACH - len(scores))
        np.testing.assert_allclose(best.scores[item], scores, atol=1e-4)
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("n_best", [2, 3, 4])
def test_an_answer_of_several_groups_is_given_once(
    make_model, source_ids, searched, n_best
):
    """Without diversity they all have the same answers."""
    model, limits = make_model(), [6, 4, 9]
    search = BeamSearch(4, num_groups=2, diversity=0.0)
    best = searched(search, model, source_ids, limits, n_best=n_best)
    alone = BeamSearch(2, num_groups=1, patience=1000.0)
    expected = searched(alone, model, source_ids, limits, n_best=2)
    np.testing.assert_allclose(best.scores[:, :2], expected.scores, rtol=1e-5)
    width = tf.shape(expected.ids)[2]
    np.testing.assert_array_equal(best.ids[:, :2, :width], expected.ids)
    assert np.isneginf(best.scores[:, 2:]).all()
    assert not np.any(best.ids[:, 2:])


@pytest.mark.parametrize(
    "fields",
    [
        {"num_groups": 0},
        {"num_groups": -1},
        {"num_groups": 1.5},
        {"num_groups": 5},
        {"num_groups": 3},
        {"num_groups": 2, "diversity": -1.0},
        {"num_groups": 2, "diversity": math.nan},
        {"num_groups": 2, "diversity": 1e9},
    ],
    ids=str,
)
def test_bad_fields(fields):
    with pytest.raises(ValueError, match=list(fields)[-1]):
        BeamSearch(4, **fields)
