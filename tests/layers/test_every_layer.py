"""Forward, backward, save and load of every layer, on any backend."""

import keras
import numpy as np
import pytest

from kseq import layers
from tests.layers.arrays import normal, numpy_of
from tests.slow import others_slow, slow

BACKEND = keras.backend.backend()
BLOCK = {"num_heads": 2, "key_dim": 4, "ffn_dim": 16, "dropout": 0.1}


def decoder(score="dot", attention=None, **arguments):
    attention = attention or layers.LuongAttention(score)
    return layers.AttentionDecoder(8, attention=attention, **arguments)


SEQUENCE = {
    "AttentionPooling": {"units": 5},
    "Dropout": {"rate": 0.2},
    "PieceDropout": {"rate": 0.2},
    "LayerNormalization": {},
    "LearnedPositionalEmbedding": {"max_length": 5},
    "GatedConvolution": {"units": 6, "kernel_size": 3, "dropout": 0.1},
    "GatedConvolution causal": {"units": 6, "kernel_size": 4, "causal": True},
    "MultiHeadAttention": {"num_heads": 2, "key_dim": 4, "window": 2},
    "MultiHeadAttention rotary": {
        "num_heads": 2,
        "key_dim": 4,
        "rotary": True,
    },
    "MultiHeadAttention relative": {
        "num_heads": 4,
        "key_dim": 2,
        "max_relative_position": 2,
        "num_kv_heads": 2,
    },
    "RecurrentPooling": {"units": 3, "attention_units": 5},
    "SinusoidalPositionalEncoding": {},
    "TransformerDecoderBlock": {**BLOCK, "norm": "post"},
    "TransformerDecoderBlock rotary": {**BLOCK, "rotary": True},
    "TransformerEncoderBlock": BLOCK,
    "TransformerEncoderBlock gated": {
        **BLOCK,
        "norm": "both",
        "normalization": "rms",
        "activation": "swiglu",
    },
    "NormalizedProjection": {"dim": 4},
}
VECTORS = {"ScaledSimilarity": {}}  # of length one
PAIR = {
    "BahdanauAttention": {"units": 5},
    "BahdanauAttention shared": {"units": 5, "shared": True, "window": 3},
    "LocalAttention": {"window": 2},
    "LocalAttention monotonic": {"window": 1, "alignment": "monotonic"},
    "LocationAttention": {"max_length": 9},
    "LuongAttention": {},
    "LuongAttention concat": {"score": "concat", "units": 5},
    "LuongAttention symmetric": {
        "score": "general",
        "units": 5,
        "symmetric": True,
    },
    "MultiHeadAttention memory": {"num_heads": 2, "key_dim": 4},
    "TransformerDecoderBlock memory": BLOCK,
}
MIXTURES = {  # of logits, and of what else they come from, with ids
    "PointerGenerator": {},
    "NgramLogits": {"num_classes": 3, "ngrams": 2, "num_buckets": 64},
}
DECODERS = {
    "AttentionDecoder": {"dropout": 0.1, "num_layers": 2},
    "AttentionDecoder fed": {"cell": "gru", "input_feeding": True},
    "AttentionDecoder tanh": {"cell": "tanh", "order": "bahdanau"},
    "AttentionDecoder gated": {"context_gate": True, "input_feeding": True},
    "LocationAwareAttention": {  # alone, it has no last weights
        "attention": layers.LocationAwareAttention(3, 2, kernel_size=3),
        "order": "bahdanau",
    },
    "AttentionDecoder unrolled": {"score": "general", "unroll": True},
}
IDS = {"PieceEmbedding": {"vocab_size": 30, "dim": 8, "piece_dropout": 0.1}}
DOCUMENTS = {
    "FlattenSentences": {},
    "SentenceDropout": {"rate": 0.2},
    "SentenceEncoder": {
        "vocab_size": 30,
        "embedding_dim": 4,
        "units": 3,
        "attention_units": 3,
        "groups": 1 if BACKEND == "jax" else 2,
    },
}
# Of features and their mask; the first output is the memory.
SOURCES = {
    "GridEncoder": {"units": 6, "num_cells": 7, "dropout": 0.1},
    "PyramidalEncoder": {"units": 6, "num_layers": 2, "dropout": 0.1},
    "PyramidalEncoder convolution": {
        "units": 6,
        "num_layers": 1,
        "front_end": "convolution",
        "augment": layers.SpecAugment(1, 1, 1, 1, stretch=0.2),
    },
    "SpecAugment": {"time_width": 2, "stretch": 0.5},
}
# Of words in turns and their mask, and attention to them.
TURNS = {
    "HierarchicalEncoder": {"units": 6, "dropout": 0.1},
    "HierarchicalEncoder gru": {"units": 6, "cell": "gru"},
    "HierarchicalBahdanauAttention": {"units": 5},
}
CELLS = {  # in a loop of Keras
    "NeuralTuringMachine": {"units": 5, "slots": 6, "read_heads": 2},
    "NeuralTuringMachine dense": {
        "units": 5,
        "slots": 6,
        "controller": "dense",
    },
}
SHAPES = {  # without the batch
    **dict.fromkeys([*SEQUENCE, *CELLS], ((5, 8),)),
    **dict.fromkeys(VECTORS, ((8,), (8,))),
    **dict.fromkeys([*PAIR, *DECODERS], ((5, 8), (7, 8))),
    "PointerGenerator": ((5, 30), (5, 8), (5, 7), (7,)),
    "NgramLogits": ((3,), (3, 6)),
    **dict.fromkeys(IDS, ((6,),)),
    **dict.fromkeys(DOCUMENTS, ((3, 6),)),
    **dict.fromkeys(SOURCES, ((5, 8), (5,))),
    **dict.fromkeys(TURNS, ((3, 4, 8), (3, 4))),
    "HierarchicalBahdanauAttention": ((5, 8), (12, 8), (3, 4)),
}


def make(name, **arguments):
    every = {**SEQUENCE, **VECTORS, **PAIR, **DECODERS}
    every |= {**MIXTURES, **IDS, **DOCUMENTS, **SOURCES, **TURNS, **CELLS}
    create = getattr(layers, name.split()[0])
    if name in CELLS:
        cell = create(**every[name], **arguments)
        return keras.layers.RNN(cell, return_sequences=True, **arguments)
    return (decoder if name in DECODERS else create)(**every[name], **arguments)


def dtype_of(name):
    return "int32" if name in {**IDS, **DOCUMENTS} else "float32"


def memory_of(outputs):
    return outputs[0] if isinstance(outputs, tuple | list) else outputs


def model_of(layer, name):
    inputs = [keras.Input(s, dtype=dtype_of(name)) for s in SHAPES[name]]
    if name in {**SOURCES, **TURNS}:
        inputs[-1] = keras.Input(SHAPES[name][-1], dtype="bool")
    if name in MIXTURES:
        inputs[-1] = keras.Input(SHAPES[name][-1], dtype="int32")
    return keras.Model(inputs, memory_of(layer(*inputs)))


def arrays_of(name):
    if name in {**SOURCES, **TURNS}:
        *features, mask = SHAPES[name]
        features = [normal(4, *shape) for shape in features]
        return [*features, np.ones((4, *mask), bool)]
    if name in MIXTURES:
        *features, ids = SHAPES[name]
        features = [abs(normal(4, *shape)) for shape in features]
        return [*features, np.random.randint(0, 30, (4, *ids))]
    if name in VECTORS:
        vectors = [normal(4, *shape) for shape in SHAPES[name]]
        return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in vectors]
    if dtype_of(name) == "float32":
        return [normal(4, *shape) for shape in SHAPES[name]]
    return [np.random.randint(0, 30, (4, *shape)) for shape in SHAPES[name]]


# What another layer of theirs, or their cell, proves in every run.
_BEFORE_A_RELEASE = {
    "BahdanauAttention shared",
    "GatedConvolution causal",
    "LocalAttention monotonic",
    "LuongAttention concat",
    "LuongAttention symmetric",
    "MultiHeadAttention memory",
    "MultiHeadAttention rotary",
    "MultiHeadAttention relative",
    "TransformerEncoderBlock gated",
    "TransformerDecoderBlock rotary",
    "AttentionDecoder tanh",
    "AttentionDecoder gated",
    "AttentionDecoder fed",
    "HierarchicalEncoder gru",
    "NeuralTuringMachine dense",
}


# Most only forward and backward.
_OFTEN = {
    "AttentionDecoder",
    "LuongAttention",
    "MultiHeadAttention",
    "SentenceEncoder",
    "TransformerEncoderBlock",
}


@pytest.fixture(params=others_slow(SHAPES, SHAPES.keys() - _BEFORE_A_RELEASE))
def name(request, seed):
    return request.param


saved_or_halved = pytest.mark.parametrize(
    "name", others_slow(SHAPES, _OFTEN), indirect=True
)


def test_no_layer_is_missing():
    classes = {name for name in layers.__all__ if name[0].isupper()}
    assert {name.split()[0] for name in SHAPES} == classes


def test_forward_and_backward(name):
    layer, arrays = make(name), arrays_of(name)
    outputs = memory_of(layer(*arrays))
    assert np.isfinite(numpy_of(outputs)).all()
    if not layer.trainable_weights:
        return

    # A step of gradient descent at rate 1 subtracts the gradient.
    model = model_of(layer, name)
    check_spec(model.outputs[0], outputs)
    model.compile(
        keras.optimizers.SGD(1.0),
        loss="mse",
        jit_compile=False,
        # Tracing takes longer than the step; the models train in a graph.
        run_eagerly=BACKEND == "tensorflow",
    )
    before = [numpy_of(weight) for weight in layer.trainable_weights]
    model.train_on_batch(arrays, normal(*outputs.shape))
    for weight, value in zip(layer.trainable_weights, before, strict=True):
        gradient = value - numpy_of(weight)
        assert np.isfinite(gradient).all()
        assert gradient.any(), weight.path


@saved_or_halved
def test_save_and_load(name, tmp_path):
    layer, arrays = make(name), arrays_of(name)
    if name == "FlattenSentences" and BACKEND == "jax":
        pytest.skip("its shape depends on values")
    model = model_of(layer, name)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    configs = [made.get_config() for made in (loaded.layers[-1], layer)]
    for config in configs:
        for inner in ("attention", "augment", "cell"):
            if isinstance(config.get(inner), dict):
                config[inner].pop("build_config", None)
    assert configs[0] == configs[1]
    np.testing.assert_array_equal(
        numpy_of(model(arrays)), numpy_of(loaded(arrays))
    )


@pytest.mark.parametrize("name", SHAPES)
def test_a_policy_is_part_of_the_config(name):
    layer = make(name, dtype=keras.DTypePolicy("mixed_bfloat16"))
    config = keras.saving.serialize_keras_object(layer)
    loaded = keras.saving.deserialize_keras_object(config)
    assert loaded.dtype_policy == layer.dtype_policy
    assert loaded.get_config() == layer.get_config()


@saved_or_halved
@pytest.mark.parametrize("dtype", ["bfloat16", slow("float16")])
def test_pure_half_precision(name, dtype):
    """Eagerly and in a graph, in all weights and outputs."""
    layer, arrays = make(name, dtype=dtype), arrays_of(name)
    outputs = memory_of(layer(*arrays))

    assert {weight.dtype for weight in layer.trainable_weights} <= {dtype}
    if dtype_of(name) == "int32" and not layer.trainable_weights:
        return
    assert keras.ops.dtype(outputs) == dtype
    full = make(name)
    full(*arrays)
    full.set_weights(
        [keras.ops.convert_to_numpy(weight) for weight in layer.weights]
    )
    check_close(numpy_of(outputs), numpy_of(memory_of(full(*arrays))))
    graph = model_of(layer, name)
    check_spec(graph.outputs[0], outputs)
    graph.compile(jit_compile=False)
    found = graph.predict_on_batch(arrays)
    check_close(np.asarray(found, "float32"), numpy_of(outputs))


def check_spec(spec, outputs):
    """What a functional model is told of an output is true."""
    assert spec.dtype == keras.ops.dtype(outputs)
    assert len(spec.shape) == len(outputs.shape)
    for told, size in zip(spec.shape, outputs.shape, strict=True):
        assert told in (None, size)


def check_close(found, expected):
    """Equal but for half precision, which deep layers may amplify at a few."""
    np.testing.assert_allclose(found, expected, atol=0.5, rtol=0.1)
    assert np.abs(found - expected).mean() < 0.05
