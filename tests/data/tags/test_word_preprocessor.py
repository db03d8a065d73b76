import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import UNK
from kseq.data import Tokenizer, WordPreprocessor
from kseq.data.files.blank_text import is_blank
from kseq.data.tags.journeys import journeys

TEXTS = [
    "from Oslo  to New York",
    "",
    "  \t Zürich\u00a0West 😀\r\n\v\fto ",
    "\ufeff \u2581 日本語",
]


@pytest.fixture(scope="module")
def preprocessor():
    tokenizer = Tokenizer.train(journeys("train", size=200).texts, 330)
    return WordPreprocessor(tokenizer, max_words=6, max_pieces=12)


def test_words_are_what_white_space_of_ascii_separates(preprocessor):
    words = preprocessor.words(TEXTS).numpy()
    expected = [text.encode().split() for text in TEXTS]
    assert [[word for word in row if word] for row in words] == expected
    assert words.shape == (4, 5)
    assert preprocessor.words([" "]).numpy().tolist() == [[b""]]


def test_a_word_has_the_same_ids_everywhere(preprocessor):
    together = preprocessor(TEXTS).inputs["source_ids"].numpy()
    for text, ids in zip(TEXTS, together, strict=True):
        for word, pieces in zip(text.encode().split(), ids, strict=False):
            [[alone]] = preprocessor([word]).inputs["source_ids"].numpy()
            # A text that shows nothing has no word; a word may show nothing.
            expected = [UNK] if is_blank(word) else alone.tolist()
            assert pieces[pieces != 0].tolist() == expected
    all_of_them = preprocessor.tokenize_all(TEXTS).to_tensor()
    np.testing.assert_array_equal(all_of_them, together)


def test_in_a_graph_the_ids_are_the_same(preprocessor):
    call = tf.function(
        preprocessor, input_signature=[tf.TensorSpec((None,), tf.string)]
    )
    for texts in (TEXTS, TEXTS[1:2], []):
        texts = tf.constant(texts, tf.string)
        found, expected = call(texts), preprocessor(texts)
        np.testing.assert_array_equal(
            found.inputs["source_ids"], expected.inputs["source_ids"]
        )
        np.testing.assert_array_equal(found.lengths, expected.lengths)


def test_blank_and_cut(preprocessor):
    source = preprocessor(["a b c d e f", "a b c d e f g", " "])
    assert source.truncated.numpy().tolist() == [False, True, False]
    assert source.blank.numpy().tolist() == [False, False, True]
    assert source.inputs["source_ids"].shape[1] == 6
    assert preprocessor.words(["a b c d e f g"]).shape == (1, 6)


def test_a_long_word_is_one_word(preprocessor):
    source = preprocessor([f"{'x' * 10_000} y"])
    ids = source.inputs["source_ids"].numpy()
    assert ids.shape == (1, 2, 12)
    assert np.count_nonzero(ids[0, 0]) == 12
    assert not source.truncated.numpy().any()


def test_no_word_is_without_a_piece():
    """A tokenizer of words knows no other."""
    tokenizer = Tokenizer.train(["a b"], 6, "word")
    source = WordPreprocessor(tokenizer)(["a c \u2581 \x00"])
    ids = source.inputs["source_ids"].numpy()[0]
    assert (ids[:, 0] != 0).all()
    assert ids[1, 0] == UNK


def test_lengths_must_be_positive(preprocessor):
    for name in ("max_words", "max_pieces"):
        with pytest.raises(ValueError, match=f"Received: {name}=0"):
            WordPreprocessor(preprocessor.tokenizer, **{name: 0})
    config = {"max_words": 6, "max_pieces": 12}
    assert preprocessor.get_config() == config
