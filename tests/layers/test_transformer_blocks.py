import math

import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import TransformerDecoderBlock, TransformerEncoderBlock
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.slow import slow

SIZES = {"num_heads": 2, "key_dim": 4, "ffn_dim": 16}
LENGTH, MEMORY_LENGTH = 4, 6
MASK = np.arange(LENGTH) < [[3], [4]]
MEMORY_MASK = np.arange(MEMORY_LENGTH) < [[4], [6]]


def randomized(block, *shapes):
    block.build(*shapes)
    block.set_weights([normal(*w.shape) / 2 for w in block.weights])
    return block


def encoder(**arguments):
    block = TransformerEncoderBlock(**SIZES, **arguments)
    return randomized(block, (None, None, 8))


def decoder(**arguments):
    block = TransformerDecoderBlock(**SIZES, **arguments)
    return randomized(block, (None, None, 8), (None, None, 6))


def language_model(**arguments):
    block = TransformerDecoderBlock(**SIZES, **arguments)
    return randomized(block, (None, None, 8))


def call(make, block, x, memory, mask=MASK, memory_mask=MEMORY_MASK, **kwargs):
    if make is encoder:
        return block(x, inputs_mask=mask, **kwargs)
    if make is language_model:
        return block(x, **kwargs)
    return block(x, memory, memory_mask=memory_mask, **kwargs)


@pytest.fixture(params=[encoder, decoder, language_model])
def make(request, seed):
    return request.param


# NumPy, from the papers.


def norm_reference(layer, x):
    if len(layer.weights) == 1:  # RMS
        [scale] = layer.get_weights()
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale
    gamma, beta = layer.get_weights()
    centered = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return centered / deviation * gamma + beta


def attention_reference(layer, query, memory, admitted):
    *projections, kernel, bias = layer.get_weights()
    if len(projections) == 2:
        q, k, v = np.split(query @ projections[0] + projections[1], 3, axis=-1)
    else:
        q = query @ projections[0] + projections[1]
        k, v = np.split(memory @ projections[2] + projections[3], 2, axis=-1)

    def heads(x):
        return np.stack(np.split(x, layer.num_heads, axis=-1), axis=1)

    energies = heads(q) @ heads(k).swapaxes(2, 3) / layer.key_dim**0.5
    powers = np.where(admitted[:, None], np.exp(energies), 0)
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return (
        np.concatenate(list((weights @ heads(v)).swapaxes(0, 1)), -1) @ (kernel)
        + bias
    )


def block_reference(block, x, sublayers):
    for name, function in sublayers:
        norm = getattr(block, f"{name}_norm")
        if block.norm == "pre":
            x = x + function(norm_reference(norm, x))
        elif block.norm == "post":
            x = norm_reference(norm, x + function(x))
        else:
            after = getattr(block, f"{name}_output_norm")
            output = function(norm_reference(norm, x))
            x = x + norm_reference(after, output)
    return x


def reference(make, block, x, memory):
    def attend(layer, memory=None, admitted=None):
        return lambda x: attention_reference(layer, x, memory, admitted)

    def ffn(x):
        hidden = x @ block.ffn_in.kernel.numpy() + block.ffn_in.bias.numpy()
        if block.activation == "swiglu":
            gate, hidden = np.split(hidden, 2, axis=-1)
            hidden = gate / (1 + np.exp(-gate)) * hidden
        elif block.activation == "gelu":
            hidden = hidden * (1 + numpy_of(ops.erf(hidden / 2**0.5))) / 2
        else:
            hidden = np.maximum(hidden, 0)
        return hidden @ block.ffn_out.kernel.numpy() + (
            block.ffn_out.bias.numpy()
        )

    if make is encoder:
        visible = np.repeat(MASK[:, None], LENGTH, axis=1)
        attention = attend(block.attention, admitted=visible)
        sublayers = [("attention", attention)]
    else:
        causal = np.tril(np.ones((1, LENGTH, LENGTH), bool))
        attention = attend(block.self_attention, admitted=causal)
        sublayers = [("self_attention", attention)]
    if make is decoder:
        attention = attend(block.cross_attention, memory, MEMORY_MASK[:, None])
        sublayers.append(("cross_attention", attention))
    return block_reference(block, x, [*sublayers, ("ffn", ffn)])


# The contract.


def test_shapes(make):
    block = make()
    x, memory = keras.Input((None, 8)), keras.Input((None, 6))

    output = call(make, block, x, memory, mask=None, memory_mask=None)
    assert output.shape == (None, None, 8)
    assert block.compute_output_shape((2, 5, 8)) == (2, 5, 8)


def test_symbolic_shapes_of_weights_and_cache():
    past = keras.Input((2, None, 4))
    output, self_weights, weights, cache = decoder()(
        keras.Input((5, 8)),
        keras.Input((7, 6)),
        cache={"key": past, "value": past},
        return_weights=True,
    )

    assert output.shape == (None, 5, 8)
    assert self_weights.shape == (None, 2, 5, None)
    assert weights.shape == (None, 2, 5, 7)
    assert cache["key"].shape == cache["value"].shape == (None, 2, None, 4)


@pytest.mark.slow  # test_every_layer.py saves and loads each block
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_round_trip_through_a_file(make, norm, tmp_path):
    block = make(
        norm=norm,
        window=None if make is decoder else 2,
        dropout=0.1,
        attention_dropout=0.2,
    )
    inputs = [
        keras.Input((None, 8)),
        keras.Input((None, 6)),
        keras.Input((None,), dtype="bool"),
        keras.Input((None,), dtype="bool"),
    ]
    model = keras.Model(inputs, call(make, block, *inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    arrays = [normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)]
    arrays += [MASK, MEMORY_MASK]
    assert loaded.layers[-1].get_config() == block.get_config()
    np.testing.assert_array_equal(model(arrays), loaded(arrays))


@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_half_precision(make, policy):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    exact, half = make(), make(dtype=policy)
    half.set_weights(exact.get_weights())
    output = call(make, half, x, memory)

    assert output.dtype == half.compute_dtype
    np.testing.assert_allclose(
        numpy_of(output),
        call(make, exact, x, memory),
        rtol=0.1,
        atol=0.3 if policy == "mixed_bfloat16" else 0.03,
    )


# Agreement.


@pytest.mark.parametrize(
    "arguments",
    [
        {"norm": "pre"},
        {"norm": "post", "activation": "gelu"},
        {"norm": "both", "normalization": "rms", "activation": "swiglu"},
    ],
    ids=str,
)
def test_agrees_with_the_paper(make, arguments):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make(**arguments)

    np.testing.assert_allclose(
        call(make, block, x, memory),
        reference(make, block, x, memory),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("make", [decoder, language_model])
@pytest.mark.parametrize(
    "arguments", [{}, {"window": 2}, {"window": 2, "rotary": True}], ids=str
)
def test_cached_steps_equal_the_whole_sequence(seed, make, arguments):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make(**arguments)
    whole = call(make, block, x, memory)

    empty = ops.zeros((2, 2, 0, 4))
    cache, steps = {"key": empty, "value": empty}, []
    for end in range(1, LENGTH + 1):
        output, cache = call(
            make,
            block,
            x[:, end - 1 : end],
            memory,
            cache=cache,
        )
        steps.append(numpy_of(output))
    np.testing.assert_allclose(np.concatenate(steps, 1), whole, atol=1e-4)


def test_hypotheses_share_one_memory(seed):
    x, memory = normal(2 * 3, 1, 8), normal(2, MEMORY_LENGTH, 6)
    block = decoder()
    output, _, weights = block(
        x,
        memory_mask=MEMORY_MASK,
        projected_memory=block.project_memory(memory),
        return_weights=True,
    )
    expected, _, expected_weights = block(
        x,
        np.repeat(memory, 3, axis=0),
        memory_mask=np.repeat(MEMORY_MASK, 3, axis=0),
        return_weights=True,
    )

    np.testing.assert_allclose(output, expected, atol=1e-4)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)


def test_weights_of_attention(make):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make(norm="post")
    output, *weights = call(make, block, x, memory, return_weights=True)
    weights = [numpy_of(w) for w in weights]

    np.testing.assert_array_equal(output, call(make, block, x, memory))
    assert [w.shape for w in weights] == {
        encoder: [(2, 2, LENGTH, LENGTH)],
        decoder: [(2, 2, LENGTH, LENGTH), (2, 2, LENGTH, MEMORY_LENGTH)],
        language_model: [(2, 2, LENGTH, LENGTH)],
    }[make]
    for w in weights:
        np.testing.assert_allclose(w.sum(axis=-1), 1, atol=1e-5)
    if make is encoder:
        assert not weights[0][0, :, :, 3:].any()
    else:
        assert not np.triu(weights[0], 1).any()
        expected = block.self_attention(x, causal=True, return_weights=True)
        np.testing.assert_allclose(weights[0], expected[1], atol=1e-6)


@pytest.mark.parametrize("make", [decoder, language_model])
def test_cached_weights_are_rows_of_the_whole(seed, make):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make()
    whole = call(make, block, x, memory, return_weights=True)
    empty = ops.zeros((2, 2, 0, 4))
    cache = {"key": empty, "value": empty}
    *_, cache = call(make, block, x[:, :2], memory, cache=cache)
    rest = call(make, block, x[:, 2:], memory, cache=cache, return_weights=True)

    assert rest[1].shape == (2, 2, LENGTH - 2, LENGTH)
    for found, expected in zip(rest[1:-1], whole[1:], strict=True):
        np.testing.assert_allclose(found, expected[:, :, 2:], atol=1e-5)


# Influence.


@pytest.mark.parametrize("make", [decoder, language_model])
def test_the_future_changes_nothing(seed, make):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make()
    other = np.concatenate([x[:, :2], normal(2, LENGTH - 2, 8)], axis=1)

    before = numpy_of(call(make, block, x, memory, mask=None))
    after = numpy_of(call(make, block, other, memory, mask=None))
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    assert np.all(np.any(before[:, 2:] != after[:, 2:], axis=-1))


def test_padding_changes_nothing(make):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make()
    padded = np.concatenate([x, normal(2, 4, 8)], axis=1)
    padded_memory = np.concatenate([memory, normal(2, 4, 6)], axis=1)

    output = call(
        make,
        block,
        padded,
        padded_memory,
        mask=np.pad(MASK, [(0, 0), (0, 4)]),
        memory_mask=np.pad(MEMORY_MASK, [(0, 0), (0, 4)]),
    )
    np.testing.assert_allclose(
        numpy_of(output)[:, :LENGTH], call(make, block, x, memory), atol=1e-4
    )


def test_what_self_mask_excludes_changes_nothing(seed):
    """Whole and with a cache."""
    block, x = language_model(rotary=True), normal(2, LENGTH, 8)
    mask = np.arange(LENGTH) >= [[0], [2]]
    other = np.where(mask[:, :, None], x, normal(2, LENGTH, 8))
    whole = numpy_of(block(x, self_mask=mask))
    after = numpy_of(block(other, self_mask=mask))
    np.testing.assert_allclose(after[mask], whole[mask], atol=1e-5)
    assert np.abs(numpy_of(block(other))[1, 2:] - whole[1, 2:]).max() > 1e-3

    empty = ops.zeros((2, 2, 0, 4))
    cache = {"key": empty, "value": empty}
    _, cache = block(other[:, :3], self_mask=mask[:, :3], cache=cache)
    last, _ = block(other[:, 3:], self_mask=mask, cache=cache)
    np.testing.assert_allclose(last, whole[:, 3:], atol=1e-4)


@pytest.mark.parametrize(
    ("norm", "dropout", "attention_dropout"),
    [("pre", 0.5, 0.0), ("post", 0.5, 0.0), ("pre", 0.0, 0.5)],
)
def test_dropout_is_for_training(make, norm, dropout, attention_dropout):
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    block = make(
        norm=norm, dropout=dropout, attention_dropout=attention_dropout
    )

    plain = numpy_of(call(make, block, x, memory))
    np.testing.assert_array_equal(plain, call(make, block, x, memory))
    dropped = numpy_of(call(make, block, x, memory, training=True))
    assert np.any(plain != dropped)


@pytest.mark.parametrize("policy", [slow("float32"), *HALF_POLICIES])
def test_training_on_nothing_but_padding_stays_finite(make, policy):
    block = make(dtype=policy)
    inputs = [
        keras.Input((None, 8)),
        keras.Input((None, 6)),
        keras.Input((None,), dtype="bool"),
        keras.Input((None,), dtype="bool"),
    ]
    model = keras.Model(inputs, call(make, block, *inputs))
    # Tracing takes longer than the step; the models train in a graph.
    eagerly = keras.backend.backend() == "tensorflow"
    sgd = keras.optimizers.SGD(0.01)
    model.compile(sgd, loss="mse", run_eagerly=eagerly)
    arrays = [normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)]
    arrays += [np.zeros_like(MASK), np.zeros_like(MEMORY_MASK)]
    loss = model.train_on_batch(arrays, normal(2, LENGTH, 8))

    assert np.isfinite(loss)
    for weight in block.trainable_weights:
        assert np.all(np.isfinite(weight.numpy()))


# Errors.


def test_bad_arguments(make):
    for arguments in ({"norm": "middle"}, {"window": -1}, {"dropout": 1.5}):
        with pytest.raises(ValueError, match="Received"):
            make(**arguments)
    for epsilon in (0, -1e-5, math.nan, "small"):
        with pytest.raises(ValueError, match="Received: norm_epsilon="):
            make(norm_epsilon=epsilon)
    block = type(make())
    for arguments in ({"ffn_dim": 0}, {"num_heads": 1.5}, {"key_dim": True}):
        with pytest.raises(ValueError, match="Received"):
            block(**SIZES | arguments)


def test_a_memory_is_missing_or_not_expected():
    x, memory = normal(2, LENGTH, 8), normal(2, MEMORY_LENGTH, 6)
    with pytest.raises(ValueError, match="built with a memory"):
        decoder()(x)
    with pytest.raises(ValueError, match="built without a memory"):
        language_model()(x, memory)
