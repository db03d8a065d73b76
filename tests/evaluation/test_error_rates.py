import pytest

from kseq.evaluation import cer, wer


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
