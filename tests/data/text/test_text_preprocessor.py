import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.data import TextPreprocessor

TEXTS = ["A dog runs across the meadow.", "", "The woman"]


@pytest.fixture
def preprocessor(tokenizer):
    return TextPreprocessor(tokenizer)


def test_a_source_is_padded_ids_with_lengths(preprocessor, tokenizer):
    inputs, lengths, truncated, blank = preprocessor(TEXTS)

    rows = [[*row, END] for row in tokenizer.tokenize(TEXTS).to_list()]
    ids = tf.ragged.constant(rows, dtype=tf.int32).to_tensor(PAD)
    np.testing.assert_array_equal(inputs["source_ids"], ids)
    assert inputs["source_ids"].dtype == lengths.dtype == tf.int32
    assert lengths.numpy().tolist() == [len(row) for row in rows]
    assert blank.numpy().tolist() == [False, True, False]
    assert not truncated.numpy().any()


def test_a_long_source_is_cut_and_says_so(tokenizer):
    whole = tokenizer.tokenize(TEXTS[:1]).to_list()[0]

    source = TextPreprocessor(tokenizer, max_length=4)(TEXTS)

    assert source.inputs["source_ids"].numpy()[0].tolist() == [*whole[:3], END]
    assert source.truncated.numpy().tolist() == [True, False, True]
    assert source.lengths.numpy().tolist() == [4, 1, 4]


def test_a_text_alone_and_in_a_batch(preprocessor):
    together = preprocessor(TEXTS).inputs["source_ids"].numpy()
    for text, row in zip(TEXTS, together, strict=True):
        [alone] = preprocessor([text]).inputs["source_ids"].numpy()
        assert row[: len(alone)].tolist() == alone.tolist()
        assert not row[len(alone) :].any()


def test_training_has_the_same_ids_uncut(preprocessor, tokenizer):
    rows = TextPreprocessor(tokenizer, max_length=2).tokenize(TEXTS)
    ids = preprocessor(TEXTS).inputs["source_ids"]
    np.testing.assert_array_equal(rows.to_tensor(PAD), ids)


def test_nothing_has_a_length_of_one(preprocessor):
    source = preprocessor(tf.constant([], tf.string))
    assert source.inputs["source_ids"].shape == (0, 1)
    assert source.lengths.shape == source.blank.shape == (0,)


def test_tokens_are_the_pieces_without_padding(preprocessor, tokenizer):
    inputs = preprocessor(TEXTS).inputs
    tokens = preprocessor.tokens(inputs).numpy()
    assert tokens.shape == inputs["source_ids"].shape
    for text, row in zip(TEXTS, tokens, strict=True):
        spelled = b"".join(row).decode()
        assert spelled.replace("\u2581", " ").strip() == f"{text}</s>".strip()


def test_in_a_graph_it_is_the_same(preprocessor):
    function = tf.function(
        lambda text: preprocessor(text),
        input_signature=list(preprocessor.input_signature.values()),
    )
    for texts in (TEXTS, [""]):
        found = function(tf.constant(texts))
        expected = preprocessor(texts)
        tf.nest.map_structure(np.testing.assert_array_equal, found, expected)
    specs = function.get_concrete_function().structured_outputs
    assert specs.inputs["source_ids"].shape.as_list() == [None, None]
    for rest in specs[1:]:
        assert rest.shape.rank == 1


def test_its_config_makes_it_again(tokenizer):
    config = TextPreprocessor(tokenizer, max_length=9).get_config()
    assert config == {"max_length": 9}
    again = TextPreprocessor(tokenizer, **config)
    assert again.get_config() == config
    assert again.vocab_size == tokenizer.vocab_size == 320


def test_max_length_has_room_for_a_token_and_end(tokenizer):
    with pytest.raises(ValueError, match=r"at least 2.*max_length=1"):
        TextPreprocessor(tokenizer, max_length=1)
