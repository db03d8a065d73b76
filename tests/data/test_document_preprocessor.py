import random

import pytest
import tensorflow as tf

from kseq.data import DocumentPreprocessor, Tokenizer
from kseq.data.documents import Documents

TEXT = "The cat sat on the mat. It cost $3.50 then! Dr. A. B. Roe, e.g., asked."


@pytest.fixture(scope="module")
def pieces():
    return Tokenizer.train([TEXT] * 3, 300)


@pytest.fixture
def sentences(pieces):
    """The sentences that a text is cut into, as strings."""

    def cut(text, **arguments):
        tokenizer = DocumentPreprocessor(pieces, **arguments)
        ids = tokenizer.tokenize([text]).to_tensor()
        found, words = tokenizer.strings(ids)
        found, words = found[0].numpy().tolist(), words[0].numpy().tolist()
        assert [b"".join(row).strip() for row in words] == found
        return [sentence.decode("utf-8", "replace") for sentence in found]

    return cut


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It cost $3.50. Fine.", ["It cost $3.50.", "Fine."]),
        ("Dr. J. Roe came. Ok.", ["Dr. J. Roe came.", "Ok."]),
        ("No end", ["No end"]),
        ("日本語です。次の文です。", ["日本語です。", "次の文です。"]),
        ("Да. Нет?", ["Да.", "Нет?"]),
        ("so:\n\n one\r\ntwo<br /><BR>three", ["so:", "one", "two", "three"]),
        ("Mr.\nSmith", ["Mr.", "Smith"]),
        ("", []),
        (" \t<br>\n", []),
        ("nul \0 here. 😀 \u2028 é", ["nul \0 here.", "😀 \u2028 é"]),
    ],
)
def test_sentences(sentences, text, expected):
    assert sentences(text) == expected


def test_ready_sentences_are_left_as_they_are(sentences):
    text = "Dr. No came. He left.\n\nsecond\tthird"
    assert sentences(text, in_lines=True) == [
        "Dr. No came. He left.",
        "second",
        "third",
    ]


def test_a_long_sentence_goes_on_as_another(pieces, sentences):
    whole = pieces.tokenize([TEXT]).to_list()[0]
    tokenizer = DocumentPreprocessor(pieces, in_lines=True, max_words=7)
    [parts] = tokenizer.tokenize([TEXT]).to_list()

    assert [piece for part in parts for piece in part] == whole
    assert [len(part) for part in parts[:-1]] == [7] * (len(parts) - 1)
    assert 1 <= len(parts[-1]) <= 7


def test_a_long_document_is_cut_and_says_so(pieces):
    tokenizer = DocumentPreprocessor(pieces, max_sentences=2)
    ids, is_cut = tokenizer.tokenize_and_cut(
        ["One. Two. Three.", "One. Two.", ""]
    )
    assert ids.row_lengths().numpy().tolist() == [2, 2, 0]
    assert is_cut.numpy().tolist() == [True, False, False]


def test_a_text_alone_and_in_a_batch(pieces, seed):
    random.seed(seed)
    letters = "aB .!?\n\t<br>。é😀$1"
    texts = [
        "".join(random.choices(letters, k=random.randrange(40)))
        for _ in range(40)
    ]
    tokenizer = DocumentPreprocessor(pieces, max_words=5, max_sentences=4)
    together = tokenizer.tokenize(texts).to_list()
    assert together == [
        tokenizer.tokenize([text]).to_list()[0] for text in texts
    ]


def test_invalid_bytes_are_replaced(pieces):
    tokenizer = DocumentPreprocessor(pieces)
    wrong = tokenizer.tokenize(tf.constant([b"a \xff b"]))
    assert wrong.to_list() == tokenizer.tokenize(["a \ufffd b"]).to_list()


def test_no_documents(pieces):
    ids = DocumentPreprocessor(pieces).tokenize(tf.constant([], tf.string))
    assert ids.to_list() == []


def test_training_takes_over_the_form_of_the_documents():
    documents = Documents(["a b\nc d"] * 3, list("xyx"), in_lines=True)
    tokenizer = DocumentPreprocessor.train(documents, 265, max_words=5)
    assert tokenizer.get_config() == {
        "in_lines": True,
        "max_sentences": 100,
        "max_words": 5,
    }


@pytest.mark.parametrize("name", ["max_sentences", "max_words"])
def test_lengths_must_be_positive(pieces, name):
    with pytest.raises(ValueError, match=f"Received: {name}=0"):
        DocumentPreprocessor(pieces, **{name: 0})
