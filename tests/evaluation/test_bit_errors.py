import functools
import math

import numpy as np
import pytest

from kseq.data.algorithms import BinarySequences
from kseq.evaluation import BitErrors
from kseq.serving import MemoryUse

# Of three steps the last two are asked for.
TARGETS = np.array([[0, 0], [1, 0], [1, 1]], "float32")
WEIGHTS = np.array([0, 1, 1], "float32")
# Right with 3/4 and 7/8; a half is wrong, and so is 1/8.
ONES = np.array([[0.9, 0.9], [0.75, 0.125], [0.5, 0.125]], "float32")
COST = math.log2(4 / 3) + math.log2(8 / 7) + 1 + 3


class Constant:
    """Answers with the same probabilities, as many as there are steps."""

    def __init__(self, ones=ONES, signatures=("serving_default",)):
        self.ones = ones
        self.signatures = dict.fromkeys(signatures)
        self.explained = []

    def __call__(self, inputs, progress=None):
        if progress is not None:
            progress(len(inputs))
        return [self.ones[: len(vectors)] for vectors in inputs]

    def explain(self, inputs):
        self.explained += inputs
        weights = [np.full((len(x), 1, 4), 0.25) for x in inputs]
        return [
            MemoryUse(x, self.ones[: len(x)], w, w)
            for x, w in zip(inputs, weights, strict=True)
        ]


def sequence(steps=3):
    inputs = np.full((steps, 2), 0.126, "float32")
    return BinarySequences(inputs, TARGETS[:steps], WEIGHTS[:steps])


def test_wrong_bits_and_what_they_cost():
    found = BitErrors(Constant(), {"": [sequence(), sequence(2)]})
    done = []
    scores = found.scores(done.append)
    assert len(found) == sum(done) == 2
    first_step = math.log2(4 / 3) + math.log2(8 / 7)
    assert scores == pytest.approx(
        {
            "bits_wrong": (2 + 0) / 2,
            "error": 2 / 6,
            "cost": (COST + first_step) / 2,
        }
    )


def test_a_certain_mistake_has_a_finite_cost():
    wrong = BitErrors(Constant(1 - TARGETS), {"": [sequence()]}).scores()
    assert wrong["cost"] == pytest.approx(4 * math.log2(1e7), rel=1e-6)
    assert wrong["error"] == 1
    right = BitErrors(Constant(TARGETS), {"": [sequence()]}).scores()
    assert right == {"bits_wrong": 0, "error": 0, "cost": 0}


def test_sets_are_suffixes_and_lines_of_the_report():
    sets = {"": [sequence()], "long_3": [sequence()] * 2}
    best = functools.partial(np.full_like, fill_value=0.75)
    found = BitErrors(Constant(), sets, best=lambda drawn: best(drawn.targets))
    names = ("bits_wrong", "error", "cost")
    assert list(found.scores()) == [*names, *(f"{n}_long_3" for n in names)]
    # Three of four bits are 1.
    least = f"best possible:{3 * math.log2(4 / 3) + 2:.3f}"
    assert found.report() == [
        "wrong bits 50.000%  sequences:1",
        f"cost per sequence {COST:.3f} bits  sequences:1|{least}",
        "long 3: wrong bits 50.000%  sequences:2",
        f"long 3: cost per sequence {COST:.3f} bits  sequences:2|{least}",
    ]
    assert found.results["error_long_3"].value == 0.5


def test_rows_show_what_is_asked_for():
    found = BitErrors(Constant(), {"": [sequence()] * 3, "b": [sequence()]})
    found.scores()
    inputs = "[[0.13, 0.13], [0.13, 0.13], [0.13, 0.13]]"
    assert found.rows(2) == [(inputs, "10 11", "10 00")] * 2
    assert len(found.rows(9)) == 3


def test_pictures_are_of_the_longest_sequences():
    signatures = ("serving_default", "explain")
    predictor = Constant(signatures=signatures)
    sets = {name: [sequence(2), sequence(3)] for name in ("", "b", "c")}
    pictures = BitErrors(predictor, sets).pictures(2)
    assert list(pictures) == ["memory", "memory_b"]
    assert all(png.startswith(b"\x89PNG\r\n") for png in pictures.values())
    assert [len(inputs) for inputs in predictor.explained] == [3, 3]
    assert BitErrors(Constant(), sets).pictures(2) == {}


def test_an_empty_set():
    with pytest.raises(ValueError, match="must have at least one example"):
        BitErrors(Constant(), {"a": [sequence()], "b": []})
