import random
import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import DocumentPreprocessor, Tokenizer
from kseq.data.documents.documents import Documents

TEXT = "The cat sat on the mat. It cost $3.50 then! Dr. A. B. Roe, e.g., asked."


@pytest.fixture(scope="module")
def pieces():
    return Tokenizer.train([TEXT] * 3, 300)


def with_bytes(text):
    """A text with the bytes that pieces such as `<0xE6>` name."""
    return re.sub(
        rb"<0x(..)>", lambda name: bytes.fromhex(name[1].decode()), text
    )


@pytest.fixture
def sentences(pieces):
    """The sentences that a text is cut into, as strings."""

    def cut(text, **arguments):
        preprocessor = DocumentPreprocessor(pieces, **arguments)
        found, spelled = preprocessor.tokens(preprocessor([text]).inputs)
        found, spelled = found[0].numpy().tolist(), spelled[0].numpy().tolist()
        joined = (b"".join(row).strip() for row in spelled)
        assert list(map(with_bytes, joined)) == found
        if found == [b""]:  # L is at least 1
            return []
        return [sentence.decode() for sentence in found]

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


SPACES = [
    chr(number)
    for number in range(sys.maxunicode + 1)
    if chr(number).isspace() and chr(number) not in "\n\r\x1c\x1d\x1e\x1f"
]


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_any_white_space_between_sentences(sentences, space):
    """The breaker alone leaves broken characters of the wider ones."""
    text = f"{space}One{space}two.{space}Three!{space * 2}Four"
    assert sentences(text) == [f"One{space}two.", "Three!", "Four"]


def test_ready_sentences_are_left_as_they_are(sentences):
    text = "Dr. No came. He left.\n\nsecond\tthird"
    assert sentences(text, in_lines=True) == [
        "Dr. No came. He left.",
        "second",
        "third",
    ]


def test_a_long_sentence_continues_as_another(pieces, sentences):
    whole = pieces.tokenize([TEXT]).to_list()[0]
    tokenizer = DocumentPreprocessor(pieces, in_lines=True, max_pieces=7)
    [parts] = tokenizer.tokenize([TEXT]).to_list()

    assert [piece for part in parts for piece in part] == whole
    assert [len(part) for part in parts[:-1]] == [7] * (len(parts) - 1)
    assert 1 <= len(parts[-1]) <= 7


def test_pieces_and_sentences_are_in_utf8(pieces):
    """Also where a character is several pieces, or parts of a sentence cut it.

    JSON holds no other strings: a server had no answer.
    """
    preprocessor = DocumentPreprocessor(pieces, max_pieces=7)
    source = preprocessor(["a 😀 é", "日本語" * 3])
    sentences, words = preprocessor.tokens(source.inputs)
    assert sentences[0, 0].numpy().decode() == "a 😀"
    named = [b"<0xF0>", b"<0x9F>", b"<0x98>", b"<0x80>"]
    assert words[0, 0].numpy().tolist()[-4:] == named
    for text in [*sentences.numpy().ravel(), *words.numpy().ravel()]:
        text.decode()


def test_a_long_document_is_cut_and_says_so(pieces):
    tokenizer = DocumentPreprocessor(pieces, max_sentences=2)
    texts = ["One. Two. Three.", "One. Two.", ""]
    assert tokenizer.tokenize(texts).row_lengths().numpy().tolist() == [2, 2, 0]
    assert tokenizer(texts).truncated.numpy().tolist() == [True, False, False]


def test_a_source_is_padded_ids_with_lengths(pieces):
    preprocessor = DocumentPreprocessor(pieces)
    texts = ["The cat sat. On a mat.", "", "So."]

    inputs, lengths, truncated, blank = preprocessor(texts)

    ids = preprocessor.tokenize(texts)
    np.testing.assert_array_equal(inputs["source_ids"], ids.to_tensor())
    assert lengths.numpy().tolist() == [
        sum(map(len, document)) for document in ids.to_list()
    ]
    assert lengths.dtype == tf.int32
    assert not truncated.numpy().any()
    assert blank.numpy().tolist() == [False, True, False]


@pytest.mark.parametrize("texts", [[""], [" \n", "<br>"]])
def test_blank_documents_have_one_padded_piece(pieces, texts):
    source = DocumentPreprocessor(pieces)(texts)
    assert source.inputs["source_ids"].numpy().tolist() == [[[0]]] * len(texts)
    assert source.blank.numpy().all()
    assert not source.lengths.numpy().any()


def test_in_a_graph_it_is_the_same(pieces):
    preprocessor = DocumentPreprocessor(pieces)
    function = tf.function(
        lambda text: preprocessor(text),
        input_signature=list(preprocessor.input_signature.values()),
    )
    for texts in ([TEXT, "So."], [""]):
        expected = preprocessor(texts)
        tf.nest.map_structure(
            np.testing.assert_array_equal,
            function(tf.constant(texts)),
            expected,
        )


def test_a_text_alone_and_in_a_batch(pieces, seed):
    random.seed(seed)
    letters = "aB .!?\n\t<br>。é😀$1"
    texts = [
        "".join(random.choices(letters, k=random.randrange(40)))
        for _ in range(15)
    ]
    tokenizer = DocumentPreprocessor(pieces, max_pieces=5, max_sentences=4)
    together = tokenizer.tokenize(texts).to_list()
    assert together == [
        tokenizer.tokenize([text]).to_list()[0] for text in texts
    ]


def test_invalid_bytes_are_replaced(pieces):
    tokenizer = DocumentPreprocessor(pieces)
    wrong = tokenizer.tokenize(tf.constant([b"a \xff b"]))
    assert wrong.to_list() == tokenizer.tokenize(["a \ufffd b"]).to_list()


def test_no_documents(pieces):
    preprocessor = DocumentPreprocessor(pieces)
    none = tf.constant([], tf.string)
    assert preprocessor.tokenize(none).to_list() == []
    source = preprocessor(none)
    assert source.inputs["source_ids"].shape == (0, 1, 1)
    assert source.blank.shape == (0,)


def test_training_takes_over_the_form_of_the_documents():
    documents = Documents(["a b\nc d"] * 3, list("xyx"), in_lines=True)
    tokenizer = DocumentPreprocessor.train(documents, 265, max_pieces=5)
    assert tokenizer.get_config() == {
        "in_lines": True,
        "max_sentences": 100,
        "max_pieces": 5,
    }


@pytest.mark.parametrize("name", ["max_sentences", "max_pieces"])
def test_lengths_must_be_positive(pieces, name):
    with pytest.raises(ValueError, match=f"Received: {name}=0"):
        DocumentPreprocessor(pieces, **{name: 0})
