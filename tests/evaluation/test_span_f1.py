import pytest

from kseq.evaluation import span_f1
from kseq.evaluation.span_f1 import are_bio


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("B-x I-x O B-y", "B-x I-x O B-y", 1),
        ("B-x O O B-y", "B-x I-x O B-y", 0.5),  # an end is wrong
        ("B-x I-x O B-x", "B-x I-x O B-y", 0.5),  # a kind is wrong
        ("O I-x I-x", "O B-x I-x", 1),  # without B-, from the start
        ("I-x I-y", "B-x B-y", 1),  # another kind begins a span
        ("B-x B-x", "B-x I-x", 0),  # two spans, not one
        ("O O O", "B-x O O", 0),
        ("B-x O O", "O O O", 0),
        ("O O", "O O", 0),  # there is nothing to find
        ("B-a-b I-a-b", "B-a-b I-a-b", 1),
        ("B-x O B-x O B-x O", "B-x O B-x O O O", 4 / 5),
    ],
)
def test_by_hand(output, reference, expected):
    score = span_f1([output], [reference])
    assert score.value == pytest.approx(expected)
    assert score.text == f"span F1 {expected:.4f}"


def test_all_spans_have_the_same_weight():
    """One of three true spans is found, and none is wrong."""
    outputs, references = ["B-x", "O O"], ["B-x", "B-x B-x"]
    assert span_f1(outputs, references).value == pytest.approx(2 * 1 / 4)


def test_blank_sentences_have_no_span():
    assert span_f1(["", "B-x"], ["", "B-x"]).value == 1


def test_lengths_must_be_the_same():
    for outputs, references in (([], []), (["O"], ["O", "O"])):
        with pytest.raises(ValueError, match="one output for each reference"):
            span_f1(outputs, references)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["O", "B-x", "I-x"], True),
        (["B-x"], True),
        (["O"], False),
        (["O", "I-x"], False),
        (["O", "B-x", "NOUN"], False),
    ],
)
def test_what_is_in_the_scheme(tags, expected):
    assert are_bio(tags) == expected
