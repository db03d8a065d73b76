import numpy as np
import tensorflow as tf

from kseq.serving import explained_documents


def explained(words, word_weights, sentence_weights):
    """One document, as `Classifier.explain` gives it."""
    return {
        "words": tf.constant([words]),
        "word_weights": tf.constant([word_weights], tf.float32),
        "sentence_weights": tf.constant([sentence_weights], tf.float32),
        "label": tf.constant(["größer"]),
        "probability": tf.constant([0.75]),
    }


def test_padding_is_left_out():
    [document] = explained_documents(
        explained(
            words=[["a", " b", ""], ["c", "", ""], ["", "", ""]],
            word_weights=[[0.25, 0.75, 0], [1, 0, 0], [0, 0, 0]],
            sentence_weights=[0.5, 0.5, 0],
        )
    )
    assert document.sentences == ["a b", "c"]
    assert document.words == [["a", " b"], ["c"]]
    assert document.word_weights == [[0.25, 0.75], [1]]
    assert document.sentence_weights == [0.5, 0.5]
    assert (document.label, document.probability) == ("größer", 0.75)


def test_bytes_of_a_character_are_one_word():
    smile = [bytes([byte]) for byte in "😀".encode()]
    cut = smile[:2]
    [document] = explained_documents(
        explained(
            words=[
                [*smile, b"a", b"\xc3", *smile],
                [*cut, b" b", b"", b"", b"", b"", b"", b"", b""],
            ],
            word_weights=np.full((2, 10), 0.125),
            sentence_weights=[0.5, 0.5],
        )
    )
    assert document.words == [["😀", "a", "\ufffd", "😀"], ["\ufffd", " b"]]
    assert document.word_weights[0] == [0.5, 0.125, 0.125, 0.5]
    assert document.sentences[0] == "😀a\ufffd😀"


def test_an_empty_document():
    [document] = explained_documents(explained([[""]], [[0]], [0]))
    assert document.sentences == document.words == []
    assert document.word_weights == document.sentence_weights == []
