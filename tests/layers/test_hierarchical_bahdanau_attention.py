import keras
import numpy as np
import pytest

from kseq.layers import (
    AttentionDecoder,
    BahdanauAttention,
    HierarchicalBahdanauAttention,
)
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize
from tests.layers.attention_checks import (
    check_half_precision,
    check_hypotheses,
)

# Three turns; one and two; none.
LENGTHS = np.array([[4, 2, 1], [3, 4, 0], [0, 0, 0]])
MASK = np.arange(4) < LENGTHS[..., None]


def built(**arguments):
    layer = HierarchicalBahdanauAttention(4, **arguments)
    layer.build((None, None, 8), (None, None, 6))
    return randomize(layer)


def softmax(energies):
    powers = np.exp(energies)
    return powers / powers.sum()


def reference(layer, query, memory, lengths):
    """Xing et al. 2018, one query, one turn after the other."""
    scale, turn_scale = numpy_of(layer.scale), numpy_of(layer.turn_scale)

    def energy(scale, query_projection, projection, vector):
        hidden = query_projection(query[None]) + projection(vector[None])
        return scale @ np.tanh(numpy_of(hidden))[0]

    words = layer.query_projection, layer.memory_projection
    turns = layer.turn_query_projection, layer.turn_projection
    alphas, vectors = [], []
    for turn, length in zip(memory, lengths, strict=True):
        if length:
            energies = [energy(scale, *words, m) for m in turn[:length]]
            alphas.append(softmax(energies))
            vectors.append(alphas[-1] @ turn[:length])
    betas = softmax([energy(turn_scale, *turns, r) for r in vectors])
    weights = np.zeros(memory.shape[:2])
    for i, (alpha, beta) in enumerate(zip(alphas, betas, strict=True)):
        weights[i, : len(alpha)] = beta * alpha
    return betas @ np.stack(vectors), weights.ravel()


# The contract.


def test_shapes_and_weights():
    layer = HierarchicalBahdanauAttention(units=4)
    query, memory = np.ones((3, 5, 8)), np.ones((3, 12, 6))
    context, weights = layer(
        query, memory, memory_mask=MASK, return_weights=True
    )

    assert context.shape == (3, 5, 6)
    assert weights.shape == (3, 5, 12)
    assert layer.compute_output_shape((3, 5, 8), (3, 12, 6)) == (3, 5, 6)
    assert {
        weight.path.split("/", 1)[1]: weight.shape for weight in layer.weights
    } == {
        "scale": (4,),
        "query_projection/kernel": (8, 4),
        "memory_projection/kernel": (6, 4),
        "turn_scale": (4,),
        "turn_query_projection/kernel": (8, 4),
        "turn_projection/kernel": (6, 4),
    }


def test_config(seed):
    layer = built(use_bias=True, kernel_constraint=keras.constraints.NonNeg())
    config = layer.get_config()
    again = HierarchicalBahdanauAttention.from_config(config)
    again.build((None, None, 8), (None, None, 6))
    again.set_weights(layer.get_weights())
    query, memory = normal(3, 5, 8), normal(3, 12, 6)

    assert not {"window", "shared"} & config.keys()
    np.testing.assert_array_equal(
        again(query, memory, memory_mask=MASK),
        layer(query, memory, memory_mask=MASK),
    )


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    layer, half = built(), built(dtype=dtype)
    half.set_weights(layer.get_weights())
    inputs = normal(3, 5, 8), normal(3, 12, 6), MASK
    assert not numpy_of(half(*inputs))[2].any()
    check_half_precision(dtype, half, layer, *inputs, atol=0.1)


# Values.


@pytest.mark.parametrize("use_bias", [False, True])
def test_agrees_with_the_paper(seed, use_bias):
    layer = built(use_bias=use_bias)
    query, memory = normal(3, 5, 8), normal(3, 12, 6)
    found = layer(query, memory, memory_mask=MASK, return_weights=True)
    context, weights = map(numpy_of, found)

    for row, step in np.ndindex(2, 5):
        turns = memory[row].reshape(3, 4, 6)
        expected = reference(layer, query[row, step], turns, LENGTHS[row])
        for output, value in zip((context, weights), expected, strict=True):
            np.testing.assert_allclose(output[row, step], value, atol=1e-5)


def test_nothing_to_attend_to_and_turns_without_words(seed):
    query, memory = normal(3, 5, 8), normal(3, 12, 6)
    found = built()(query, memory, memory_mask=MASK, return_weights=True)
    context, weights = map(numpy_of, found)

    assert not context[2].any() and not weights[2].any()
    np.testing.assert_allclose(weights[:2].sum(axis=-1), 1, atol=1e-6)
    masked = np.broadcast_to(~MASK.reshape(3, 1, 12), weights.shape)
    assert not weights[masked].any()


# Two ways to one answer.


def test_a_single_turn_is_additive_attention(seed):
    layer, plain = built(), BahdanauAttention(4)
    query, memory = normal(3, 5, 8), normal(3, 12, 6)
    plain.build(query.shape, memory.shape)
    words = layer.query_projection, layer.memory_projection
    plain.set_weights([layer.scale, *(part.kernel for part in words)])
    mask = np.arange(12) < [[12], [7], [0]]

    np.testing.assert_allclose(
        layer(query, memory, memory_mask=mask[:, None]),
        plain(query, memory, memory_mask=mask),
        atol=1e-6,
    )


def test_hypotheses_read_one_memory(seed):
    query, memory = normal(9, 2, 8), normal(3, 12, 6)
    check_hypotheses(built(), query, memory, MASK, atol=1e-6)


# Influence.


@pytest.mark.parametrize(("turns", "words"), [(0, 2), (2, 0), (1, 3)])
def test_padding_changes_nothing(seed, turns, words):
    layer = built()
    query, memory = normal(3, 5, 8), normal(3, 12, 6)
    longer = normal(3, 3 + turns, 4 + words, 6)
    longer[:, :3, :4] = memory.reshape(3, 3, 4, 6)
    context, weights = layer(
        query,
        longer.reshape(3, -1, 6),
        memory_mask=np.pad(MASK, [(0, 0), (0, turns), (0, words)]),
        return_weights=True,
    )
    expected = layer(query, memory, memory_mask=MASK, return_weights=True)

    np.testing.assert_allclose(context, expected[0], atol=1e-6)
    weights = numpy_of(weights).reshape(3, 5, 3 + turns, 4 + words)
    np.testing.assert_allclose(
        weights[:, :, :3, :4],
        numpy_of(expected[1]).reshape(3, 5, 3, 4),
        atol=1e-6,
    )


# Errors.


@pytest.mark.parametrize("mask", [None, MASK.reshape(3, 12)])
def test_a_mask_without_turns(mask):
    layer = HierarchicalBahdanauAttention(4)
    with pytest.raises(ValueError, match="Received: memory_mask="):
        layer(normal(3, 5, 8), normal(3, 12, 6), memory_mask=mask)


def test_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match="Received: units=0"):
        HierarchicalBahdanauAttention(0)


def test_it_does_not_need_the_order_of_bahdanau(seed):
    decoder = AttentionDecoder(8, attention=HierarchicalBahdanauAttention(4))
    arguments = normal(3, 5, 7), normal(3, 12, 6), MASK
    _, weights = decoder(*arguments, return_weights=True)

    np.testing.assert_allclose(numpy_of(weights)[:2].sum(-1), 1, atol=1e-6)
