import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.data import (
    DialoguePreprocessor,
    Tokenizer,
    evaluation_batches,
    tokenize_pairs,
    training_batches,
)
from kseq.serving.object_config import object_config, preprocessor_from_config

TURNS = [
    ["hello there", "hello", "who is there"],
    ["", "", ""],
    ["", "hello", ""],
    ["who\tis\u2028 there ", "a\nb", "\xa0"],
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["hello there", "who is there", "a b"] * 9, 290)


def joined(turns):
    return "\n".join(" ".join(turn.split()) for turn in turns)


def spelled(preprocessor, source):
    """The turns of each row as text."""
    ids = source.inputs["source_ids"]
    rows = tf.reshape(ids, (ids.shape[0], -1)).numpy().tolist()
    found = []
    for row in rows:
        pieces = preprocessor.tokenizer.pieces(tf.constant(row)).numpy()
        text = b"".join(
            b"\n" if number == END else piece
            for number, piece in zip(row, pieces, strict=True)
            if number != PAD
        )
        found.append(text.decode().replace("\u2581", " ").split("\n")[:-1])
    return [[turn.strip() for turn in turns] for turns in found]


@pytest.mark.parametrize("nested", [False, True])
def test_the_same_ids_served_in_a_data_set_and_alone(tokenizer, nested):
    preprocessor = DialoguePreprocessor(tokenizer, nested=nested)
    source = preprocessor(tf.constant(TURNS))
    assert spelled(preprocessor, source) == [
        TURNS[0],
        [""],
        ["hello"],
        ["who is there", "a b"],
    ]
    ids = preprocessor.tokenize(tf.constant([*map(joined, TURNS)]))
    batch = {"source_ids": ids.to_tensor(PAD), "target_ids": 0}
    inputs, *_ = preprocessor.look_up(batch, None, None)
    both = inputs["source_ids"], source.inputs["source_ids"]
    tf.debugging.assert_equal(*both)
    assert both[0].shape.rank == (3 if nested else 2)
    assert source.blank.numpy().tolist() == [False, True, False, False]
    assert not source.truncated.numpy().any()
    for place, turns in enumerate(TURNS):
        alone = preprocessor(tf.constant([turns])).inputs["source_ids"]
        row = both[1][place]
        part = row[tuple(map(slice, alone.shape[1:]))]
        tf.debugging.assert_equal(alone[0], part)
        assert tf.math.count_nonzero(row) == tf.math.count_nonzero(part)


@pytest.mark.parametrize("nested", [False, True])
def test_old_turns_are_forgotten_and_long_ones_cut(tokenizer, nested):
    preprocessor = DialoguePreprocessor(
        tokenizer, max_turns=2, max_pieces=3, nested=nested
    )
    source = preprocessor([["hello", "hello", "who"], ["x y z w", "", "who"]])
    assert spelled(preprocessor, source)[0] == ["hello", "who"]
    assert source.truncated.numpy().tolist() == [False, True]
    lengths = tf.math.count_nonzero(source.inputs["source_ids"], axis=-1)
    assert tf.reduce_max(lengths) <= (3 if nested else 6)


def test_bytes_that_are_not_utf_8(tokenizer):
    preprocessor = DialoguePreprocessor(tokenizer)
    wrong, right = preprocessor([[b"a\xff"], ["a\ufffd"]]).inputs["source_ids"]
    tf.debugging.assert_equal(wrong, right)


@pytest.mark.parametrize("nested", [False, True])
def test_lengths_are_what_a_batch_takes(tokenizer, nested):
    preprocessor = DialoguePreprocessor(tokenizer, nested=nested)
    texts = tf.constant(["hello\nwho is there\nhello", "", "who"])
    ids = preprocessor.tokenize(texts)
    for row, length in zip(ids, preprocessor.lengths(ids), strict=True):
        inputs = {"source_ids": row[None]}
        inputs, *_ = preprocessor.look_up(inputs, None, None)
        _, *turns, pieces = inputs["source_ids"].shape
        assert length == (5 * pieces if turns else pieces)


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_batches_hold_a_budget(tokenizer, nested):
    preprocessor = DialoguePreprocessor(tokenizer, nested=nested)
    texts = ["hello\nwho is there\nhello", "who is there", "hello\nhello"] * 9
    pairs = tf.data.Dataset.from_tensor_slices((texts, ["hello"] * len(texts)))
    batches = training_batches(
        tokenize_pairs(pairs, preprocessor, tokenizer),
        batch_tokens=64,
        max_length=40,
        seed=1,
    )
    for inputs, labels, weight in batches.take(9):
        ids = inputs["source_ids"]
        assert ids.shape.rank == (3 if nested else 2)
        assert tf.size(ids) <= 64
        assert tf.reduce_all(
            tf.reduce_any(ids == END, axis=[*range(1, ids.shape.rank)])
        )
        assert labels.shape == weight.shape == inputs["target_ids"].shape
    held_out = evaluation_batches(pairs, preprocessor, tokenizer)
    assert sum(len(labels) for _, labels, _ in held_out) == len(texts)


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_few_shapes(tokenizer, nested):
    preprocessor = DialoguePreprocessor(tokenizer, nested=nested)
    texts = ["hello\nwho is there\nhello", "who is there", "hello\nhello"] * 40
    pairs = tf.data.Dataset.from_tensor_slices((texts, ["hello"] * len(texts)))
    batches = training_batches(
        tokenize_pairs(pairs, preprocessor, tokenizer),
        batch_tokens=120,
        max_length=40,
        seed=1,
        max_shapes=2,
    )
    found, sources = set(), set()
    for inputs, labels, _ in batches.take(9):
        ids = inputs["source_ids"]
        found.add((*ids.shape, *labels.shape))
        sources |= {str(row[row > 0].tolist()) for row in ids.numpy()}
    assert found == {
        (*inputs["source_ids"].shape, *labels.shape)
        for inputs, labels, _ in batches.shapes
    }
    assert len(found) <= 2
    tokenized = preprocessor.tokenize(texts[:3]).to_list()
    assert sources == {*map(str, tokenized)}
    if nested:
        assert {turns for _, turns, *_ in found} == {5}


def test_the_first_example_is_longer_than_a_shape(tokenizer):
    """Its ids, cut in the middle of a turn, show the shape of batches."""
    preprocessor = DialoguePreprocessor(tokenizer, max_turns=1, nested=True)
    texts = ["who is there who is there who is there", *["hello"] * 20]
    pairs = tf.data.Dataset.from_tensor_slices((texts, ["hello"] * len(texts)))
    pairs = tokenize_pairs(pairs, preprocessor, tokenizer)
    lengths = pairs.source.lengths(tf.range(len(texts)))
    batches = training_batches(
        pairs, batch_tokens=200, max_length=100, seed=1, max_shapes=4
    )
    widths = {inputs["source_ids"].shape[2] for inputs, *_ in batches.shapes}
    assert min(widths) < lengths[0] <= max(widths)
    sources = {
        str(row[row > 0].tolist())
        for inputs, *_ in batches.take(9)
        for row in inputs["source_ids"].numpy()
    }
    assert sources == {
        str(ids) for ids in pairs.source.gather([0, 1]).to_list()
    }


def test_config_and_errors(tokenizer):
    preprocessor = DialoguePreprocessor(
        tokenizer, max_turns=3, max_pieces=9, nested=True
    )
    config = object_config(preprocessor)
    again = preprocessor_from_config(config, tokenizer)
    assert again.get_config() == preprocessor.get_config()
    assert again.input_signature["turns"].shape.rank == 2
    with pytest.raises(ValueError, match="max_turns=0"):
        DialoguePreprocessor(tokenizer, max_turns=0)
    with pytest.raises(ValueError, match="max_pieces=1"):
        DialoguePreprocessor(tokenizer, max_pieces=1)
