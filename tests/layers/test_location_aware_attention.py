import keras
import numpy as np
import pytest

from kseq.layers import (
    AttentionDecoder,
    BahdanauAttention,
    LocationAwareAttention,
)
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize
from tests.layers.attention_checks import (
    check_half_precision,
    check_hypotheses,
)

MASK = np.arange(7) < [[7], [4]]


def built(filters=3, kernel_size=3, **arguments):
    layer = LocationAwareAttention(4, filters, kernel_size, **arguments)
    layer.build((None, None, 8), (None, None, 6))
    return randomize(layer)


def softmax(energies, admitted=True):
    powers = np.where(admitted, np.exp(energies), 0)
    return powers / powers.sum(axis=-1, keepdims=True)


def reference(layer, query, memory, last_weights, admitted=True):
    """Chorowski et al. 2015, equations 8 and 9, one pair after the other."""
    scale, query_kernel, memory_kernel, filters, location_kernel = (
        numpy_of(weight) for weight in layer.weights
    )
    size = len(filters)
    before = (size - 1) // 2
    energies = np.zeros((*query.shape[:2], memory.shape[1]))
    for b, t, s in np.ndindex(energies.shape):
        around = np.pad(last_weights[b, t], (before, size))[s : s + size]
        located = around @ filters[:, 0]
        energies[b, t, s] = scale @ np.tanh(
            query[b, t] @ query_kernel
            + memory[b, s] @ memory_kernel
            + located @ location_kernel
        )
    weights = softmax(energies, admitted)
    return weights @ memory, weights


# The contract.


def test_shapes_and_weights():
    layer = LocationAwareAttention(units=4, filters=3)
    query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 6))
    context, weights = layer(query, memory, return_weights=True)
    again = layer(query, memory, last_weights=weights)

    assert context.shape == again.shape == (2, 5, 6)
    assert weights.shape == (2, 5, 7)
    assert layer.compute_output_shape((2, 5, 8), (2, 7, 6)) == (2, 5, 6)
    assert {
        weight.path.split("/", 1)[1]: weight.shape for weight in layer.weights
    } == {
        "scale": (4,),
        "query_projection/kernel": (8, 4),
        "memory_projection/kernel": (6, 4),
        "convolution/kernel": (31, 1, 3),
        "location_projection/kernel": (3, 4),
    }


def test_config(seed):
    layer = built(
        window=2, use_bias=True, kernel_constraint=keras.constraints.NonNeg()
    )
    again = LocationAwareAttention.from_config(layer.get_config())
    again.build((None, None, 8), (None, None, 6))
    again.set_weights(layer.get_weights())
    query, memory, last = normal(2, 5, 8), normal(2, 7, 6), normal(2, 5, 7)

    np.testing.assert_array_equal(
        again(query, memory, last_weights=last),
        layer(query, memory, last_weights=last),
    )


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    layer, half = built(), built(dtype=dtype)
    half.set_weights(layer.get_weights())
    inputs, last = (normal(2, 5, 8), normal(2, 7, 6)), normal(2, 5, 7)
    check_half_precision(
        dtype, half, layer, *inputs, last_weights=last, atol=0.1
    )


# Values.


@pytest.mark.parametrize("kernel_size", [1, 3, 4, 9])
def test_agrees_with_the_paper(seed, kernel_size):
    layer = built(kernel_size=kernel_size)
    query, memory, last = normal(2, 5, 8), normal(2, 7, 6), normal(2, 5, 7)
    found = layer(
        query,
        memory,
        memory_mask=MASK,
        last_weights=last,
        return_weights=True,
    )

    expected = reference(layer, query, memory, last, MASK[:, None])
    for output, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(output, value, atol=1e-5)


def test_a_decoder_passes_the_weights_on(seed):
    """The loop of a decoder without recurrence: its state never changes."""
    decoder = AttentionDecoder(
        8,
        attention=LocationAwareAttention(4, 3, kernel_size=3),
        order="bahdanau",
        cell="tanh",
    )
    inputs, memory = normal(2, 5, 6), normal(2, 7, 6)
    decoder(inputs, memory)
    randomize(decoder.attention)
    decoder.recurrent.set_weights([np.zeros((14, 8)), np.zeros(8)])
    decoder.input_projection.set_weights([np.zeros((6, 8))])
    _, found = decoder(inputs, memory, memory_mask=MASK, return_weights=True)

    weights, query = np.zeros((2, 1, 7)), np.zeros((2, 1, 8))
    for t in range(5):
        _, weights = reference(
            decoder.attention, query, memory, weights, MASK[:, None]
        )
        np.testing.assert_allclose(found[:, t], weights[:, 0], atol=1e-5)


# Two ways to one answer.


def test_without_last_weights_it_is_additive(seed):
    layer, plain = built(), BahdanauAttention(4)
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    plain.build(query.shape, memory.shape)
    plain.set_weights(layer.get_weights()[:3])

    for window in (None, 2):
        layer.window = plain.window = window
        np.testing.assert_allclose(
            layer(query, memory, memory_mask=MASK),
            plain(query, memory, memory_mask=MASK),
            atol=1e-6,
        )


def test_hypotheses_read_one_memory(seed):
    query, memory, last = normal(6, 2, 8), normal(2, 7, 6), normal(6, 2, 7)
    check_hypotheses(built(), query, memory, MASK, atol=1e-6, last_weights=last)


# Influence.


def test_padding_changes_nothing(seed):
    layer = built()
    query, memory, last = normal(2, 5, 8), normal(2, 7, 6), normal(2, 5, 7)
    context, weights = layer(
        query,
        np.concatenate([memory, normal(2, 3, 6)], axis=1),
        memory_mask=np.arange(10) < np.full((2, 1), 7),
        last_weights=np.pad(last, [(0, 0), (0, 0), (0, 3)]),
        return_weights=True,
    )

    assert not numpy_of(weights)[..., 7:].any()
    expected = layer(query, memory, last_weights=last)
    np.testing.assert_allclose(context, expected, atol=1e-6)


# Errors.


@pytest.mark.parametrize(
    "arguments", [{"units": 0}, {"filters": 0}, {"kernel_size": 1.5}]
)
def test_arguments_that_do_not_fit(arguments):
    with pytest.raises(ValueError, match="Received: "):
        LocationAwareAttention(**{"units": 4, **arguments})
