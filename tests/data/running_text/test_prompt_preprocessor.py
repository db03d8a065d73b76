import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.data import PromptPreprocessor, Tokenizer

TEXTS = ["a rose ", "", " is\n"]


@pytest.fixture(scope="module")
def characters():
    return Tokenizer.train(["a rose is\n"], 99, "char", verbatim=True)


@pytest.fixture
def preprocessor(characters):
    return PromptPreprocessor(characters)


def rows_of(characters, texts):
    rows = [[START, *row] for row in characters.tokenize(texts).to_list()]
    return tf.ragged.constant(rows, dtype=tf.int32).to_tensor(PAD)


def test_a_source_is_start_and_the_prompt(preprocessor, characters):
    source = preprocessor(TEXTS)
    ids = source.inputs["source_ids"]
    np.testing.assert_array_equal(ids, rows_of(characters, TEXTS))
    assert ids.dtype == source.lengths.dtype == tf.int32
    assert not source.truncated.numpy().any()
    assert not source.blank.numpy().any()
    for text, row in zip(TEXTS, ids.numpy(), strict=True):
        [alone] = preprocessor([text]).inputs["source_ids"].numpy()
        assert alone.tolist() == row[row != PAD].tolist()


def test_of_a_long_prompt_the_end_is_read(characters):
    source = PromptPreprocessor(characters, max_length=4)(TEXTS)
    expected = rows_of(characters, ["se ", "", "is\n"])
    ids = source.inputs["source_ids"].numpy()
    np.testing.assert_array_equal(ids, expected)
    assert source.truncated.numpy().tolist() == [True, False, True]


def test_nothing(preprocessor):
    source = preprocessor(tf.constant([], tf.string))
    assert source.inputs["source_ids"].shape[0] == 0
    assert source.lengths.shape == source.blank.shape == (0,)


def test_in_a_graph_it_is_the_same(preprocessor):
    function = tf.function(
        lambda prompt: preprocessor(prompt),
        input_signature=list(preprocessor.input_signature.values()),
    )
    for texts in (TEXTS, [""]):
        found, expected = function(tf.constant(texts)), preprocessor(texts)
        tf.nest.map_structure(np.testing.assert_array_equal, found, expected)


def test_its_config_makes_it_again(characters):
    config = PromptPreprocessor(characters, max_length=9).get_config()
    assert config == {"max_length": 9}
    again = PromptPreprocessor(characters, **config)
    assert again.get_config() == config
    assert again.vocab_size == characters.vocab_size


def test_max_length_has_room_for_start_and_a_token(characters):
    with pytest.raises(ValueError, match=r"at least 2.*max_length=1"):
        PromptPreprocessor(characters, max_length=1)
