import math
from types import SimpleNamespace

import numpy as np
import pytest

from kseq.evaluation import cer, letters_heard, wer
from kseq.serving.attention import Attention


def test_by_hand():
    """One letter of ten and one word of four are wrong; then one is missing."""
    assert cer(["abcde", "abcdx"], ["abcde", "abcde"]).value == 0.1
    assert wer(["a b", "a x"], ["a b", "a b"]).value == 0.25
    assert wer(["a"], ["a b"]).text == "WER 50.00 %"


def test_it_may_be_over_one():
    assert cer(["abcdef"], ["x"]).value == 6


@pytest.mark.parametrize(("output", "value"), [("", 0), (" ", 0), ("a", 1)])
def test_references_without_a_character(output, value):
    assert cer([output], [""]).value == wer([output], [""]).value == value


def test_the_nearest_of_several_references_counts():
    """Two errors or one, in two or four words; one that is right."""
    references = [["x y", "a b c x"], ["d", "e"]]
    outputs = ["a b c d", "e"]
    assert wer(outputs, references).value == 1 / 5
    assert cer(outputs, references).value == 1 / 8
    assert wer(["a"], [["", "a b"]]).value == 1  # both have one error
    single = [["a b c x"], ["d"]]
    assert wer(outputs, single) == wer(outputs, ["a b c x", "d"])


def test_some_of_the_references_are_empty():
    assert cer(["", "x"], ["ab", ""]).value == 1.5


@pytest.mark.parametrize("outputs", [[], ["a", "b"]])
def test_wrong_numbers_are_refused(outputs):
    with pytest.raises(ValueError, match="one output for each"):
        wer(outputs, ["a"][: len(outputs)])


def heard(tokens, peaks, spans, text):
    times = [f"{place / 10:.2f}" for place in range(10)]
    weights = np.eye(10)[peaks]
    attention = Attention(times, [*tokens, "</s>"], weights)
    predictor = SimpleNamespace(
        source="audio", attention=lambda inputs: [attention] * len(inputs)
    )
    transcripts = SimpleNamespace(
        raw=lambda name: ["?"], texts=[text], spans=[spans]
    )
    [line] = letters_heard(predictor, transcripts)
    return [float(part[:-1]) for part in line.split() if part.endswith("%")]


def test_letters_that_are_heard():
    """The second goes back, and the third is far from its sound."""
    spans = [(0.0, 0.2), (0.3, 0.4), (0.5, 0.6)]
    assert heard("\u2581ab", [0, 1, 3, 9], spans[:2], "ab") == [100, 100]
    tokens = ["\u2581a", "b", "c"]
    assert heard(tokens, [4, 3, 9, 9], spans, "abc") == [50, 33.3]
    found = heard(["\u2581x"], [0, 0], spans[:1], "a")
    assert found == [0, 0] and all(map(math.isfinite, found))
