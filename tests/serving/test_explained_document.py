import numpy as np
import pytest

from kseq.serving import ExplainedDocument


def explained(words, word_weights, sentence_weights):
    """A row of what the signature `explain` gives."""
    return ExplainedDocument.of_row(
        {
            "words": np.array(
                [[_bytes(word) for word in row] for row in words], object
            ),
            "word_weights": np.array(word_weights, "float32"),
            "sentence_weights": np.array(sentence_weights, "float32"),
            "label": "größer".encode(),
            "probability": np.float32(0.75),
        }
    )


def _bytes(word):
    return word.encode() if isinstance(word, str) else word


def test_padding_is_left_out():
    document = explained(
        words=[["a", " b", ""], ["c", "", ""], ["", "", ""]],
        word_weights=[[0.25, 0.75, 0], [1, 0, 0], [0, 0, 0]],
        sentence_weights=[0.5, 0.5, 0],
    )
    assert document.sentences == ["a b", "c"]
    assert document.words == [["a", " b"], ["c"]]
    assert document.word_weights == [[0.25, 0.75], [1]]
    assert document.sentence_weights == [0.5, 0.5]
    assert (document.label, document.probability) == ("größer", 0.75)


@pytest.mark.parametrize("name", ["<0x%02X>", "%c"], ids=["0.3", "0.2"])
def test_bytes_of_a_character_are_one_word(name):
    smile = [name.encode() % byte for byte in "😀".encode()]
    cut = smile[:2]
    document = explained(
        words=[
            [*smile, b"a", name.encode() % 0xC3, *smile],
            [*cut, b" b", b"", b"", b"", b"", b"", b"", b""],
        ],
        word_weights=np.full((2, 10), 0.125),
        sentence_weights=[0.5, 0.5],
    )
    assert document.words == [["😀", "a", "\ufffd", "😀"], ["\ufffd", " b"]]
    assert document.word_weights[0] == [0.5, 0.125, 0.125, 0.5]
    assert document.sentences[0] == "😀a\ufffd😀"


def test_an_empty_document():
    document = explained([[""]], [[0]], [0])
    assert document.sentences == document.words == []
    assert document.word_weights == document.sentence_weights == []


def test_json_and_a_page():
    document = explained([["a", " <b>"]], [[1 / 3, 2 / 3]], [1])
    assert document.to_json() == {
        "sentences": ["a <b>"],
        "sentence_weights": [1],
        "words": [["a", " <b>"]],
        "word_weights": [[0.333333, 0.666667]],
    }
    page = document._repr_html_()
    assert page.startswith("<!doctype html>")
    assert "größer" in page and "&lt;b&gt;" in page
