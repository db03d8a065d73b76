import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from kseq.control_tokens import END, PAD, START
from tests.models.new_weights import new_weights
from tests.models.seq2seq_systems import transformer

VOCAB = 13
VARIANTS = {
    "pre-norm": {},
    "post-norm": {"norm": "post"},
    "learned positions": {"positions": "learned", "max_length": 16},
    "window": {"window": 2},
}


def build(**settings):
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB}
    return transformer(**sizes | settings)


@functools.cache
def built(**settings):
    """A model, and what its variables were at first."""
    model = build(**settings)
    return model, [variable.numpy() for variable in model.variables]


@pytest.fixture(params=VARIANTS)
def model(request, seed):
    return new_weights(*built(**VARIANTS[request.param]))


def random_ids(*shape):
    return np.random.randint(END + 1, VOCAB, shape).astype("int32")


def sentences(batch=3, length=7):
    """Sources of unequal lengths, targets that begin with START."""
    source = random_ids(batch, length)
    source[0, 4:] = PAD
    source[1, 2:] = PAD
    target = random_ids(batch, length + 1)
    target[:, 0] = START
    return source, target


def logits(model, source, target):
    inputs = {"source_ids": source, "target_ids": target}
    return ops.convert_to_numpy(model(inputs))


def test_the_memory_of_padding_is_not_read(model):
    """It has no influence on any logit."""
    source, target = sentences()
    state = model.encode({"source_ids": source})
    poisoned = keras.tree.map_structure(
        lambda x: (
            ops.where(ops.equal(source, PAD)[:, None, :, None], 1e3, x)
            if len(x.shape) == 4
            else x
        ),
        state["memory"],
    )
    clean, _ = model.decode_step(target[:, 0], state)
    other, _ = model.decode_step(target[:, 0], {**state, "memory": poisoned})
    np.testing.assert_array_equal(clean, other)


def test_the_past_and_the_source_are_read(model):
    source, target = sentences()
    before = logits(model, source, target)
    changed = target.copy()
    changed[:, 0] = END + 1
    assert abs(before - logits(model, source, changed))[:, 0].min() > 0
    source[:, 0] = (source[:, 0] - END) % (VOCAB - END - 1) + END + 1
    assert abs(before - logits(model, source, target)).max(axis=-1).min() > 0


def test_attention_is_a_distribution_over_real_tokens(model):
    source, target = sentences()
    inputs = {"source_ids": source, "target_ids": target}
    weights = ops.convert_to_numpy(model.attention_weights(inputs))
    assert weights.shape == (3, 8, 7)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert not weights[:, 0][source == PAD].any()


def test_all_attention_weights(model):
    source, target = sentences()
    inputs = {"source_ids": source, "target_ids": target}
    weights = keras.tree.map_structure(
        ops.convert_to_numpy, model.all_attention_weights(inputs)
    )
    shapes = {"encoder": (7, 7), "decoder": (8, 8), "cross": (8, 7)}
    assert weights.keys() == shapes.keys()
    for name, shape in shapes.items():
        assert len(weights[name]) == (1 if name == "encoder" else 2)
        for of_block in weights[name]:
            assert of_block.shape == (3, 4, *shape)
            assert of_block.dtype == "float32"
            sums = of_block.sum(axis=-1).swapaxes(1, 2)  # (B, T, N)
            if name == "encoder":  # padding may see nothing in its window
                sums = sums[source != PAD]
            np.testing.assert_allclose(sums, 1, atol=1e-5)

    later = np.triu(np.ones((8, 8), bool), k=1)
    for of_block in weights["decoder"]:
        assert not of_block[..., later].any()
    padding = np.broadcast_to((source == PAD)[:, None, None], (3, 4, 7, 7))
    for of_block in weights["encoder"]:
        assert not of_block[padding].any()
    np.testing.assert_array_equal(
        model.attention_weights(inputs), weights["cross"][-1].mean(axis=1)
    )


def test_self_attention_sees_its_window():
    source, target = sentences()
    source[:] = random_ids(*source.shape)
    inputs = {"source_ids": source, "target_ids": target}
    model, _ = built(window=2)
    weights = model.all_attention_weights(inputs)
    far = abs(np.arange(7)[:, None] - np.arange(7)) > 2
    for of_block in weights["encoder"]:
        assert not ops.convert_to_numpy(of_block)[..., far].any()


def test_weights_in_half_precision_are_float32():
    source, target = sentences()
    inputs = {"source_ids": source, "target_ids": target}
    model, _ = built(dtype="mixed_bfloat16")
    weights = model.all_attention_weights(inputs)
    for of_block in keras.tree.flatten(weights):
        assert ops.dtype(of_block) == "float32"


def test_the_output_projection_is_in_half_precision():
    source, target = sentences()
    model, _ = built(dtype="mixed_bfloat16")
    step = tf.function(model).get_concrete_function(
        {"source_ids": source, "target_ids": target}
    )
    products = [
        op.inputs[1].dtype.name
        for op in step.graph.get_operations()
        if op.type == "MatMul"
    ]
    assert set(products) == {"bfloat16"}


def test_embeddings_are_shared_and_tied_as_asked():
    def count(**settings):
        model = build(num_encoder_layers=1, num_decoder_layers=1, **settings)
        return model.count_params()

    alone = count(share_embeddings=False, tie_output=False)
    tied = count(share_embeddings=False, tie_output=True)
    shared = count(share_embeddings=True, tie_output=True)
    assert alone - tied == tied - shared == VOCAB * 16


def test_shared_layers_have_the_weights_of_one():
    def count(layers, **settings):
        settings |= {"num_encoder_layers": layers, "num_decoder_layers": layers}
        return build(**settings).count_params()

    assert count(2, share_layers=True) == count(1) < count(2)


def test_without_positions_the_order_of_the_source_changes_nothing():
    source, target = sentences()
    source[:] = random_ids(*source.shape)
    model, _ = built(positions="none")
    expected = logits(model, source[:, ::-1], target)
    np.testing.assert_allclose(
        logits(model, source, target), expected, atol=1e-5
    )


def test_an_end_that_is_not_attended_to_is_as_if_there_were_none():
    source, target = sentences()
    model, _ = built(source_end=False)
    expected = logits(model, source, target)
    with_end = np.pad(source, ((0, 0), (0, 1)))
    with_end[[0, 1, 2], [4, 2, 7]] = END
    found = logits(model, with_end, target)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with_end[:] = [END, *[PAD] * 7]  # as of a blank text
    assert np.isfinite(logits(model, with_end, target)).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_keras_can_clone_its_layers(positions):
    model, _ = built(positions=positions, output_bias=True)
    clone = keras.models.clone_model(model)
    clone_of = {layer.name: layer for layer in clone.layers}
    for layer in model.layers:
        found = clone_of[layer.name]
        assert found.get_config() == layer.get_config()
        found.set_weights(layer.get_weights())
    source, target = sentences()
    np.testing.assert_array_equal(
        logits(clone, source, target), logits(model, source, target)
    )


def test_the_epsilon_of_all_normalization():
    """The output of one that has a large epsilon is near its beta."""
    source, target = sentences()
    model, _ = built()
    large, _ = built(norm_epsilon=1.0)
    large.set_weights(model.get_weights())
    assert "norm_epsilon" not in model.get_config()
    assert large.get_config()["norm_epsilon"] == 1.0
    encoder, decoder = large.encoder_blocks[-1], large.decoder_blocks[-1]
    for layer in (
        *(encoder.attention_norm, encoder.ffn_norm, large.encoder_norm),
        *(decoder.self_attention_norm, decoder.cross_attention_norm),
        *(decoder.ffn_norm, large.decoder_norm),
    ):
        assert layer.epsilon == 1.0
    found = logits(large, source, target)
    assert np.abs(found).max() < np.abs(logits(model, source, target)).max()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_heads": 3}, "model_dim=16, num_heads=3"),
        ({"num_heads": 1.5}, "num_heads=1.5"),
        ({"num_encoder_layers": 0.5}, "num_encoder_layers=0.5"),
        ({"num_decoder_layers": 0}, "num_decoder_layers=0"),
        ({"source_vocab_size": 0}, "source_vocab_size=0"),
        ({"target_vocab_size": -1}, "target_vocab_size=-1"),
        ({"model_dim": 0}, "model_dim=0"),
        ({"ffn_dim": 0}, "ffn_dim=0"),
        ({"max_length": 0}, "max_length=0"),
        ({"dropout": float("nan")}, "dropout=nan"),
        ({"attention_dropout": 1.5}, "attention_dropout=1.5"),
        ({"positions": "absolute"}, "positions='absolute'"),
        ({"normalization": "batch"}, "normalization='batch'"),
        ({"activation": "tanh"}, "activation='tanh'"),
        ({"num_kv_heads": 3}, "num_heads=4, num_kv_heads=3"),
        ({"norm": "middle"}, "norm='middle'"),
        ({"norm_epsilon": -1e-3}, "norm_epsilon=-0.001"),
        ({"norm_epsilon": 0}, "norm_epsilon=0"),
        ({"norm_epsilon": "small"}, "norm_epsilon='small'"),
        (
            {"source_layer": keras.layers.Identity(), "source_end": False},
            "source_end=False needs a source of token ids",
        ),
        (
            {"share_embeddings": True, "target_vocab_size": 14},
            "target_vocab_size=14",
        ),
    ],
)
def test_sizes_that_do_not_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        build(**settings)
