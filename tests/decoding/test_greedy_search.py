import math
import re

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import (
    BeamSearch,
    ForbiddenTokens,
    GreedySearch,
    MinLength,
    NoRepeatedNgrams,
    RepetitionPenalty,
    Sampling,
)
from tests.slow import slow


def test_takes_the_likeliest_token_at_every_step(
    make_model, source_ids, searched
):
    model, limit = make_model(), 6

    best = searched(GreedySearch(), model, source_ids, [limit] * 3)

    for i, answer in enumerate(best.ids[:, 0].numpy()):
        expected = [START]
        while expected[-1] != END and len(expected) <= limit:
            logits = model(
                {
                    "source_ids": source_ids[i : i + 1],
                    "target_ids": tf.constant([expected]),
                }
            )[0, -1].numpy()
            logits[[PAD, START]] = -np.inf
            expected.append(int(logits.argmax()))
        length = len(expected) - 1
        assert best.lengths[i, 0] == length
        assert answer[:length].tolist() == expected[1:]
        assert set(answer[length:].tolist()) <= {PAD}


def test_scores_are_those_of_the_whole_sequences(
    make_model, source_ids, searched, scores_of
):
    model = make_model()

    best = searched(GreedySearch(), model, source_ids, [6, 4, 9])

    expected = scores_of(model, best.ids)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


CONSTRAINTS = (
    ForbiddenTokens([4]),
    MinLength(3),
    NoRepeatedNgrams(2),
    RepetitionPenalty(1.2),
)


@pytest.mark.parametrize(
    "constraints",
    [slow(()), CONSTRAINTS],
    ids=["free", "bound"],
)
@pytest.mark.parametrize(
    "search",
    [
        (GreedySearch, {}),
        (BeamSearch, {"length_penalty": 0.6}),
        (Sampling, {"seed": 3, "num_samples": 2}),
    ],
    ids=["greedy", "beam", "sampling"],
)
def test_same_in_and_out_of_a_graph(
    make_model, source_ids, in_graph, searched, search, constraints
):
    make, options = search
    search = make(**options, constraints=constraints)
    arguments = make_model(), source_ids, [6, 1, 9]

    inside = in_graph(search, *arguments, n_best=search.most_answers)
    outside = searched(search, *arguments, n_best=search.most_answers)

    for a, b in zip(inside, outside, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_length_limits_of_nothing_and_an_empty_batch(
    make_model, source_ids, searched
):
    model = make_model()

    best = searched(GreedySearch(), model, source_ids, [0, 1, 0])
    np.testing.assert_array_equal(best.lengths, [[0], [1], [0]])
    np.testing.assert_array_equal(best.scores[0], [0])

    none = searched(GreedySearch(), model, source_ids[:0], [])
    assert none.ids.shape == (0, 1, 0)


def test_fields_and_config():
    search = GreedySearch(length_penalty=0.5, constraints=[MinLength(3)])

    assert search.most_answers == 1
    assert search.get_config() == {
        "length_penalty": 0.5,
        "penalty_offset": 5.0,
        "ctc_weight": 0.0,
        "constraints": [{"length": 3}],
    }
    assert search == GreedySearch(0.5, constraints=(MinLength(3),))


@pytest.mark.parametrize("search", [GreedySearch, BeamSearch, Sampling])
@pytest.mark.parametrize(
    "kwargs",
    [
        {"length_penalty": -0.5},
        {"length_penalty": math.nan},
        {"length_penalty": math.inf},
        {"length_penalty": 10**400},
        {"length_penalty": True},
        {"length_penalty": "1"},
        {"penalty_offset": -1},
        {"penalty_offset": math.nan},
        {"constraints": 3},
        {"constraints": [3]},
        {"constraints": None},
    ],
    ids=str,
)
def test_bad_fields_of_every_search(search, kwargs):
    (name, value), *_ = kwargs.items()
    with pytest.raises(
        ValueError, match=re.escape(f"Received: {name}={value!r}")
    ):
        search(**kwargs)


@pytest.mark.parametrize("n_best", [0, 2, True, 1.0])
def test_bad_n_best(make_model, source_ids, n_best):
    inputs = {"source_ids": source_ids}
    with pytest.raises(ValueError, match=f"from 1 to 1.*n_best={n_best}"):
        GreedySearch()(make_model(), inputs, [3, 3, 3], n_best=n_best)
