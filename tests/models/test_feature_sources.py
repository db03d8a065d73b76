"""Models whose source is features, read by a layer."""

import keras
import numpy as np
import pytest

from kseq.layers import (
    BahdanauAttention,
    GridEncoder,
    LocationAwareAttention,
    LuongAttention,
    PyramidalEncoder,
    SpecAugment,
)
from kseq.models import LSTMSeq2Seq, Transformer
from kseq.models.auxiliary_losses import ctc_losses
from kseq.user_error import ArgumentError
from tests.slow import slow

GRID = {
    "source_vocab_size": None,
    "target_vocab_size": 14,
    "source_dim": 3,
    "num_encoder_layers": 0,
}


def lstm(**settings):
    settings = {
        "attention": LuongAttention("general"),
        "source_layer": GridEncoder(12, num_cells=6),
        **GRID,
        **settings,
    }
    return LSTMSeq2Seq(embedding_dim=8, units=16, **settings)


def speech(**settings):
    """A recognizer of speech with all that it may have."""
    augment = SpecAugment(1, 1, 1, 1, stretch=0.2)
    encoder = PyramidalEncoder(8, num_layers=2, augment=augment)
    settings = {
        "attention": LocationAwareAttention(8, 2, kernel_size=3),
        "order": "bahdanau",
        "ctc": 0.3,
        "source_layer": encoder,
        **settings,
    }
    return lstm(**settings)


def transformer(**settings):
    return Transformer(
        num_decoder_layers=1,
        model_dim=8,
        ffn_dim=16,
        num_heads=2,
        source_layer=GridEncoder(8, num_cells=6),
        **{**GRID, **settings},
    )


@keras.saving.register_keras_serializable(package="test")
class MeanOfWords(keras.layers.Layer):
    """Turns (B, L, W, E) -> memory (B, L, E), and last states."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=4)

    def call(self, source, source_mask):
        source = keras.ops.convert_to_tensor(source, sparse=False)
        real = keras.ops.cast(source_mask, source.dtype)
        real = keras.ops.expand_dims(real, axis=-1)
        memory = keras.ops.sum(source * real, axis=2)
        last = memory[:, -1]
        return memory, keras.ops.any(source_mask, axis=-1), [[last, last]]

    compute_output_spec = keras.Operation.compute_output_spec


def batch_of(size, cells=5, time=4):
    labels = np.random.randint(4, 14, (size, time))
    labels[0, -1:] = 0
    inputs = {
        "source": np.random.normal(size=(size, cells, 3)).astype("float32"),
        "source_mask": np.ones((size, cells), bool),
        "target_ids": np.pad(labels, [(0, 0), (1, 0)], constant_values=2)[
            :, :-1
        ],
    }
    inputs["target_ids"][0, -1] = 0
    return inputs, labels, (labels != 0).astype("float32")


def test_a_file_has_the_weights_of_ctc(seed, tmp_path):
    model = speech()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs, *_ = batch_of(2)

    for one, other in zip(model.weights, loaded.weights, strict=True):
        assert one.path == other.path
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def test_text_models_keep_their_config():
    model = LSTMSeq2Seq(20, 30, embedding_dim=4, units=4)
    new = {"source_layer", "source_dim", "coverage", "ctc"}
    assert not new & model.get_config().keys()


@pytest.mark.parametrize(
    "auxiliary",
    [
        {"ctc": 0.3},
        slow({"coverage": 0.5}),
        slow({"coverage": 0.5, "ctc": 0.3}),
    ],
)
def test_auxiliary_losses_by_hand(seed, auxiliary):
    """Each is the same, for each row, as that of the weights in NumPy."""
    settings = {"attention": BahdanauAttention(8), "order": "bahdanau"}
    model, plain = lstm(**settings, **auxiliary), lstm(**settings)
    own = [weight for weight in model.weights if "ctc" not in weight.path]
    plain.set_weights([weight.numpy() for weight in own])
    inputs, labels, weights = batch_of(4)
    inputs["source_mask"][1, 3:] = False
    alphas = np.array(model.attention_weights(inputs)) * weights[:, :, None]
    missing = (1 - alphas.sum(axis=1)) ** 2 * inputs["source_mask"]
    row_losses = auxiliary.get("coverage", 0) * missing.sum(axis=1)
    share = auxiliary.get("ctc", 0)
    if share:
        memory, mask, _ = model.source_layer(
            inputs["source"], inputs["source_mask"]
        )
        logits = model.ctc_logits(memory)
        row_losses += share * np.array(ctc_losses(logits, mask, labels))
    for each in (model, plain):
        each.compile(
            keras.optimizers.SGD(0.0), label_smoothing=0.1, run_eagerly=True
        )
    found, without = (
        each.evaluate(
            inputs,
            labels,
            sample_weight=weights,
            verbose=0,
            return_dict=True,
        )
        for each in (model, plain)
    )
    expected = (1 - share) * without["loss"] + row_losses.sum() / weights.sum()
    assert found["loss"] == pytest.approx(expected, abs=1e-5)
    for name in ("perplexity", "accuracy"):
        assert found[name] == pytest.approx(without[name])


def test_ctc_in_half_precision_and_in_a_part_without_rows(seed):
    model = lstm(ctc=0.3, dtype="mixed_float16")
    model.compile(
        keras.optimizers.SGD(0.1), accumulation_steps=4, run_eagerly=True
    )
    before = model.ctc_logits.get_weights()
    logs = model.train_on_batch(*batch_of(3), return_dict=True)
    after = model.ctc_logits.get_weights()

    assert np.isfinite(list(logs.values())).all()
    for one, other in zip(before, after, strict=True):
        assert np.isfinite(other).all() and (other != one).any()


def test_turns_of_words_come_through_a_layer(seed):
    model = LSTMSeq2Seq(
        20,
        30,
        embedding_dim=8,
        units=8,
        num_encoder_layers=0,
        attention=LuongAttention("dot"),
        source_layer=MeanOfWords(),
    )
    inputs = {"source_ids": np.ones((2, 3, 4)), "target_ids": np.ones((2, 5))}
    assert model(inputs).shape == (2, 5, 30)
    state = model.encode(inputs)
    assert model.decode_step(np.array([2, 2]), state)[0].shape == (2, 30)


@pytest.mark.parametrize("make", [lstm, transformer])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source_dim": None}, "source_dim=None"),
        ({"source_vocab_size": 9}, "source_vocab_size=9"),
        ({"source_dim": 0}, "source_dim=0"),
        ({"num_encoder_layers": -1}, "num_encoder_layers=-1"),
    ],
)
def test_wrong_arguments(make, settings, message):
    with pytest.raises(ArgumentError, match=message):
        make(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        *({"coverage": x} for x in (-1, float("nan"), float("inf"), "x")),
        *({"ctc": x} for x in (-0.1, 1, float("nan"), "x")),
        {"coverage": 0.5, "attention": None},
        {"ctc": 0.5, "attention": None},
    ],
)
def test_wrong_auxiliary_losses(settings):
    [name, *_] = settings
    with pytest.raises(ArgumentError, match=f"Received: {name}="):
        lstm(**settings)


def test_a_grid_has_no_more_cells_than_positions():
    layer = GridEncoder(4, num_cells=2)
    with pytest.raises(ValueError, match="num_cells=2"):
        layer(np.ones((1, 3, 2)), np.ones((1, 3), bool))
