import keras
import numpy as np
import pytest

from kseq.models import ConvSeq2Seq
from kseq.user_error import ArgumentError
from tests.models.new_weights import new_weights

SIZES = {"embedding_dim": 6, "units": 4, "max_length": 8}
SOURCE = np.array([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGET = np.array([[2, 8, 9, 11], [2, 5, 5, 6]])
INPUTS = {"source_ids": SOURCE, "target_ids": TARGET}


def model_of(**settings):
    arguments = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    model = ConvSeq2Seq(12, 14, **SIZES | arguments | settings)
    return new_weights(model, [each.numpy() for each in model.variables])


def dense(layer, x):
    return x @ layer.kernel.numpy() + layer.bias.numpy()


def embedded(embedding, positions, ids):
    vectors = embedding.embeddings.numpy()[ids]
    return vectors + positions.embeddings.numpy()[: len(ids)]


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def convolved(layer, x):
    return layer(x[None].astype("float32"))[0].numpy()


def by_definition(model, source, target):
    """Logits and mean weights of one pair, without padding, in NumPy."""
    half = np.sqrt(0.5)
    e = embedded(model.source_embedding, model.source_positions, source)
    x = dense(model.encoder_input, e)
    for layer in model.encoder:
        x = (x + convolved(layer, x)) * half
    z = dense(model.encoder_output, x)
    values = (z + e) * half

    g = embedded(model.target_embedding, model.target_positions, target)
    y, weights = dense(model.decoder_input, g), []
    for layer, to_query, of_context in zip(
        model.decoder,
        model.query_projections,
        model.context_projections,
        strict=True,
    ):
        hidden = convolved(layer, y)
        query = (dense(to_query, hidden) + g) * half
        weights.append(softmax(query @ z.T))
        context = weights[-1] @ values * np.sqrt(len(source))
        hidden = (hidden + dense(of_context, context)) * half
        y = (hidden + y) * half
    logits = dense(model.decoder_output, y)
    matrix = model.target_embedding.embeddings.numpy().T
    return logits @ matrix, np.mean(weights, axis=0)


def test_values(seed):
    model = model_of()
    logits, weights = model(INPUTS), model.attention_weights(INPUTS)
    for row, length in enumerate([5, 3]):
        expected, expected_weights = by_definition(
            model, SOURCE[row, :length], TARGET[row]
        )
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)
        np.testing.assert_allclose(
            weights[row, :, :length], expected_weights, atol=1e-5
        )
    assert not np.any(weights[1, :, 3:])
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1.0, atol=1e-6)


def test_keras_can_clone_its_layers(seed):
    """Its attention is given the projected memory alone."""
    model = model_of()
    clone = keras.models.clone_model(model)
    for layer in model.layers:
        clone.get_layer(layer.name).set_weights(layer.get_weights())
    np.testing.assert_array_equal(
        clone.predict(INPUTS, verbose=0), model.predict(INPUTS, verbose=0)
    )


def test_a_step_costs_the_same_whatever_the_length(seed):
    """Its state has the last k - 1 inputs of each layer, and no others."""
    model = model_of(kernel_size=3, num_decoder_layers=2)
    first = state = model.encode(INPUTS)
    # Past the positions that have a vector.
    for _ in range(SIZES["max_length"] + 2):
        logits, state = model.decode_step(np.array([5, 6]), state)
        assert np.isfinite(logits).all()
    shapes = [keras.tree.map_structure(np.shape, x) for x in (first, state)]
    assert shapes[0] == shapes[1]
    assert set(shapes[0]["before"]) == {(2, 2, 4)}


def test_constants_change_nothing(seed):
    model = model_of()
    state = model.encode(INPUTS)
    tokens = np.array([2, 2])
    expected, _ = model.decode_step(tokens, state)
    constants = {"constants": model.decoding_constants()}
    found, _ = model.decode_step(tokens, state | constants)
    np.testing.assert_array_equal(found, expected)


def test_a_target_sees_as_far_as_its_layers_reach(seed):
    """Three layers of 3: seven tokens, the last one of them."""
    model = model_of(kernel_size=3)
    source = np.repeat(SOURCE[:1], 2, axis=0)
    target = np.tile([2, 5, 6, 7, 8, 9, 10, 11], (2, 1))
    target[1, 0] = 13
    one, other = np.asarray(model({"source_ids": source, "target_ids": target}))
    assert (one[:7] != other[:7]).any(axis=-1).all()
    np.testing.assert_array_equal(one[7], other[7])


SIZE_NAMES = (
    *("embedding_dim", "units", "num_encoder_layers", "num_decoder_layers"),
    *("kernel_size", "max_length"),
)


@pytest.mark.parametrize("name", SIZE_NAMES)
@pytest.mark.parametrize("wrong", [0, -1, 2.5, None, True, 10**12])
def test_sizes_are_checked(name, wrong):
    with pytest.raises(ArgumentError, match=f"{name} must be an integer"):
        model_of(**{name: wrong})


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), "1"])
def test_dropout_is_checked(wrong):
    with pytest.raises(ArgumentError, match="dropout must be from 0 to 1"):
        model_of(dropout=wrong)
