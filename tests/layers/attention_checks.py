"""What the tests of each attention over a memory check."""

import keras
import numpy as np
from keras import ops

from tests.layers.arrays import numpy_of

NO_MEMORY = np.array([[False] * 7, [True] * 7])  # in the first row


def check_close(found, expected, atol):
    """Contexts and weights."""
    for output, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(output, value, atol=atol)


def check_symbolic_shapes(layer, query, memory):
    context, weights = layer(query, memory, return_weights=True)
    assert context.shape == layer(query, memory).shape
    assert context.shape == (None, 5, memory.shape[-1])
    assert weights.shape == (None, 5, memory.shape[1])


def check_round_trip(layer, folder, *arrays):
    arrays = [*arrays, np.arange(7) < [[3], [5]]]
    inputs = [
        keras.Input((None, *x.shape[2:]), dtype=str(x.dtype)) for x in arrays
    ]
    model = keras.Model(inputs, layer(*inputs, return_weights=True))
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    for output, again in zip(model(arrays), loaded(arrays), strict=True):
        np.testing.assert_array_equal(output, again)


def check_half_precision(dtype, half, layer, *inputs, atol, **arguments):
    output = half(*inputs, **arguments)
    assert ops.dtype(output) == dtype.removeprefix("mixed_")
    expected = layer(*inputs, **arguments)
    np.testing.assert_allclose(numpy_of(output), numpy_of(expected), atol=atol)


def check_reference(layer, reference, query, memory, atol):
    """Without and with a mask, `reference` gives context and weights."""
    mask = np.random.random((2, 7)) < 0.5
    mask[:, 2] = True
    for given, admitted in ((None, True), (mask, mask[:, None])):
        found = layer(query, memory, memory_mask=given, return_weights=True)
        check_close(found, reference(layer, query, memory, admitted), atol)


def check_window(layer, all_of_it, query, memory):
    """A window of 2 is a cut of the memory."""
    all_of_it.set_weights(layer.get_weights())
    mask = np.arange(7) < np.full((2, 1), 5)
    np.testing.assert_allclose(
        layer(query, memory, memory_mask=mask),
        all_of_it(query, memory[:, 3:5]),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        layer(query, memory), all_of_it(query, memory[:, 5:]), atol=1e-5
    )


def check_hypotheses(layer, query, memory, mask, atol, **arguments):
    """The K hypotheses of each item read one memory."""
    count = len(query) // len(memory)
    shared = layer(
        query,
        memory_mask=mask,
        projected_memory=layer.project_memory(memory),
        return_weights=True,
        **arguments,
    )
    repeated = layer(
        query,
        np.repeat(memory, count, axis=0),
        memory_mask=np.repeat(mask, count, axis=0),
        return_weights=True,
        **arguments,
    )
    check_close(shared, repeated, atol)


def check_padding(layer, query, memory, padding, atol):
    padded = np.concatenate([memory, padding], axis=1)
    mask = np.arange(10) < np.full((2, 1), 7)
    context, weights = layer(
        query, padded, memory_mask=mask, return_weights=True
    )
    assert not numpy_of(weights)[..., 7:].any()
    np.testing.assert_allclose(context, layer(query, memory), atol=atol)


def check_no_memory(output, weights):
    """Zeros where the mask is that of `NO_MEMORY`."""
    assert not numpy_of(output)[0].any()
    assert not numpy_of(weights)[0].any()
    np.testing.assert_allclose(numpy_of(weights)[1].sum(-1), 1, atol=0.02)
