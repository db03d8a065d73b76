"""The mask of `Embedding(mask_zero=True)` is used where no other is given."""

import keras
import numpy as np
import pytest

from kseq import layers
from tests.layers.arrays import normal, numpy_of, randomize
from tests.slow import others_slow

IDS = np.array([[3, 4, 5, 6], [7, 8, 0, 0]])
PADDED = np.pad(IDS, [(0, 0), (0, 3)])
LEFT = np.array([[0, 0, 3, 4, 5, 6], [0, 0, 0, 0, 7, 8]])
BLOCK = {"num_heads": 2, "key_dim": 4, "ffn_dim": 16}
RELATIVE = {"max_relative_position": 2}


def encoder_stack():
    """The mask goes from layer to layer."""
    stack = [
        layers.SinusoidalPositionalEncoding(),
        layers.LearnedPositionalEmbedding(9),
        layers.Dropout(0.1),
        layers.TransformerEncoderBlock(**BLOCK, norm="post"),
        layers.TransformerEncoderBlock(**BLOCK),
        layers.LayerNormalization(),
        layers.AttentionPooling(5),
    ]

    def call(x):
        for layer in stack:
            x = layer(x)
        return x

    return call


OF_ONE = {
    "pooling": lambda: layers.AttentionPooling(5),
    "recurrent pooling": lambda: layers.RecurrentPooling(3, 5),
    "self-attention": lambda: layers.MultiHeadAttention(2, 4),
    "pre-norm block": lambda: layers.TransformerEncoderBlock(**BLOCK),
    "post-norm block": lambda: layers.TransformerEncoderBlock(
        **BLOCK, norm="post"
    ),
    "language model": lambda: layers.TransformerDecoderBlock(**BLOCK),
    "convolution": lambda: layers.GatedConvolution(6, 3),
    "stack": encoder_stack,
}
OVER_MEMORY = {
    "multi-head": lambda: layers.MultiHeadAttention(2, 4),
    "bahdanau": lambda: layers.BahdanauAttention(5),
    "window": lambda: layers.BahdanauAttention(5, window=2),
    "luong": lambda: layers.LuongAttention("general"),
    "local": lambda: layers.LocalAttention(window=2),
    "location": lambda: layers.LocationAttention(9),
    "location-aware": lambda: layers.LocationAwareAttention(5),
    "decoder block": lambda: layers.TransformerDecoderBlock(**BLOCK),
    "decoder": lambda: layers.AttentionDecoder(
        8, attention=layers.LuongAttention(), input_feeding=True
    ),
}


def run(inputs, output, arrays):
    """Yields the outputs, eagerly and then in a graph."""
    model = randomize(keras.Model(keras.tree.flatten(inputs), output), 0.5)
    model.compile(jit_compile=False)
    yield [numpy_of(model(list(given))) for given in arrays]
    yield [model.predict_on_batch(list(given)) for given in arrays]


IN_THE_STACK = {"pooling", "pre-norm block", "post-norm block"}


@pytest.mark.parametrize(
    "name", others_slow(OF_ONE, OF_ONE.keys() - IN_THE_STACK)
)
def test_padding_changes_nothing(seed, name):
    ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(10, 8, mask_zero=True)
    output = OF_ONE[name]()(embedding(ids))
    alone = [IDS[:1], IDS[1:, :2]]
    given = [[PADDED], *([row] for row in alone)]

    for padded, *rows in run(ids, output, given):
        for i, row in enumerate(rows):
            real = padded[i] if row.ndim == 2 else padded[i, : row.shape[1]]
            np.testing.assert_allclose(real, row[0], atol=1e-5)


@pytest.mark.parametrize("name", ["pre-norm block", "language model"])
def test_padding_of_sentences_changes_nothing(seed, name):
    """A layer for each of them is given their mask as an argument."""
    ids = keras.Input((None, None), dtype="int32")
    x = keras.layers.Embedding(10, 8, mask_zero=True)(ids)
    for layer in (OF_ONE[name](), layers.AttentionPooling(5)):
        x = keras.layers.TimeDistributed(layer)(x)
    given = [[LEFT[None]], [IDS[None, 1:, :2]]]

    for padded, alone in run(ids, x, given):
        np.testing.assert_allclose(padded[0, 1], alone[0, 0], atol=1e-5)


@pytest.mark.parametrize("name", ["self-attention", "language model"])
def test_padding_on_the_left_changes_nothing(seed, name):
    ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(10, 8, mask_zero=True)
    output = OF_ONE[name]()(embedding(ids))
    for padded, alone in run(ids, output, [[LEFT], [IDS[1:, :2]]]):
        np.testing.assert_allclose(padded[1, -2:], alone[0], atol=1e-5)


@pytest.mark.parametrize("options", [{"rotary": True}, RELATIVE])
def test_positions_of_the_query_change_no_mask(seed, options):
    """Keras names a mask after its tensor where a layer takes several."""
    x = keras.layers.Embedding(10, 8, mask_zero=True)(LEFT)
    positions = np.tile(np.arange(6), (2, 1))
    distances = positions[:, :, None] - positions[:, None, :]
    given = {"positions": positions}
    if options is RELATIVE:
        given = {"distances": distances.astype("float32")}
    for layer in (
        layers.MultiHeadAttention(2, 4, **options),
        layers.TransformerDecoderBlock(**BLOCK, **options),
    ):
        np.testing.assert_allclose(layer(x), layer(x, **given), atol=1e-6)


def test_the_mask_of_a_query_is_not_that_of_a_cache(seed):
    x = keras.layers.Embedding(10, 8, mask_zero=True)(PADDED)
    empty = np.zeros((2, 2, 0, 4), "float32")
    for layer in (
        layers.MultiHeadAttention(2, 4),
        layers.TransformerDecoderBlock(**BLOCK),
    ):
        cache = {"key": empty, "value": empty}
        for _ in range(2):
            output, cache = layer(x, cache=cache)
        assert output.shape == x.shape


OF_MEMORY_TOO = {"window", "luong", "location", "decoder block"}


@pytest.mark.parametrize(
    "name", others_slow(OVER_MEMORY, OVER_MEMORY.keys() - OF_MEMORY_TOO)
)
def test_padding_of_a_memory_changes_nothing(seed, name):
    ids, query = keras.Input((None,), dtype="int32"), keras.Input((3, 8))
    memory = keras.layers.Embedding(10, 8, mask_zero=True)(ids)
    output = OVER_MEMORY[name]()(query, memory)
    queries = normal(2, 3, 8)
    given = [[PADDED, queries], [IDS[1:, :2], queries[1:]]]

    for padded, alone in run([ids, query], output, given):
        np.testing.assert_allclose(padded[1:], alone, atol=1e-5)


@pytest.mark.parametrize("name", OVER_MEMORY)
def test_both_sides_may_have_a_mask(seed, name):
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(10, 8, mask_zero=True)(ids)
    output = OVER_MEMORY[name]()(x, x)
    # In a graph masks arrive as in the test above.
    padded, alone = next(run(ids, output, [[PADDED], [IDS[1:, :2]]]))

    np.testing.assert_allclose(padded[1, :2], alone[0], atol=1e-5)


def test_a_mask_reaches_the_loss(seed):
    """A loss of Keras leaves out what the mask of the outputs is False at."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(10, 8, mask_zero=True)(ids)
    decoder = layers.AttentionDecoder(8, attention=layers.LuongAttention())
    outputs, weights = decoder(x, x, return_weights=True)
    logits = keras.layers.Dense(10)(outputs)
    for output in (
        layers.PointerGenerator()(logits, outputs, weights, ids),
        layers.NormalizedProjection(10)(outputs),
    ):
        model = keras.Model(ids, output)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, run_eagerly=True)
        labels = np.where(PADDED, PADDED, 9)
        sums = [
            model.evaluate(row[None, row > 0], row[None, row > 0], verbose=0)
            * np.count_nonzero(row)
            for row in PADDED
        ]
        found = model.evaluate(PADDED, labels, verbose=0)
        mean = sum(sums) / np.count_nonzero(PADDED)
        np.testing.assert_allclose(found, mean, rtol=1e-4)


def test_an_explicit_mask_is_preferred(seed):
    x = keras.layers.Embedding(10, 8, mask_zero=True)(PADDED)
    explicit = np.ones(PADDED.shape, bool)
    values = numpy_of(x)
    for make, keyword in (
        (OF_ONE["pooling"], "inputs_mask"),
        (OF_ONE["recurrent pooling"], "inputs_mask"),
        (OF_ONE["self-attention"], "memory_mask"),
        (OF_ONE["pre-norm block"], "inputs_mask"),
    ):
        layer = make()
        np.testing.assert_allclose(
            layer(x, **{keyword: explicit}), layer(values), atol=1e-6
        )
