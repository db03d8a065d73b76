import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from kseq.control_tokens import END, PAD, START
from kseq.layers import (
    BahdanauAttention,
    LocationAttention,
    LocationAwareAttention,
    LuongAttention,
)
from kseq.models import LSTMSeq2Seq

ATTENTIONS = {
    "bahdanau": lambda: BahdanauAttention(units=5),
    "dot": lambda: LuongAttention("dot"),
    "scaled_dot": lambda: LuongAttention("scaled_dot"),
    "general": lambda: LuongAttention("general"),
    "concat": lambda: LuongAttention("concat", units=5),
    "window": lambda: LuongAttention("dot", window=2),
    "location-aware": lambda: LocationAwareAttention(5, 2, kernel_size=3),
    "location": lambda: LocationAttention(max_length=5),
}
WIRINGS = {
    "luong": {"order": "luong"},
    "feeding": {"order": "luong", "input_feeding": True},
    "bahdanau": {"order": "bahdanau"},
}
SOURCE = np.array([[5, 6, 7, 8, 9, END], [7, 4, END, PAD, PAD, PAD]])
TARGET = np.array([[START, 8, 9, 5, 6], [START, 6, PAD, PAD, PAD]])


@functools.cache
def built(attention, wiring, **arguments):
    sizes = {"embedding_dim": 6, "units": 8}
    return LSTMSeq2Seq(
        source_vocab_size=12,
        target_vocab_size=14,
        attention=attention and ATTENTIONS[attention](),
        **WIRINGS[wiring],
        **sizes | arguments,
    )


def make(attention="dot", wiring="luong", **arguments):
    """A model, one of each kind, with new weights."""
    model = built(attention, wiring, **arguments)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(np.random.normal(size=weight.shape) / 2)
    return model


def logits_of(model, source_ids, target_ids):
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    return ops.convert_to_numpy(logits)


def logits_step_by_step(model, source_ids, target_ids):
    state, logits = model.encode({"source_ids": source_ids}), []
    for token_ids in target_ids.T:
        step, state = model.decode_step(ops.array(token_ids), state)
        logits.append(ops.convert_to_numpy(step))
    return np.stack(logits, axis=1)


def wirings_of(*cases):
    """Runs a test for cases of attention and wiring."""
    return pytest.mark.parametrize("attention, wiring", cases)


TYPICAL = [
    ("bahdanau", "bahdanau"),
    ("dot", "feeding"),
    ("window", "luong"),
    ("location", "feeding"),
    (None, "luong"),
]
# Each attention and each wiring in every run; all pairs before a release.
OFTEN = {
    *TYPICAL,
    ("location-aware", "bahdanau"),
    ("scaled_dot", "luong"),
    ("general", "bahdanau"),
    ("concat", "feeding"),
}
every_wiring = wirings_of(
    *(
        pytest.param(*case, marks=() if case in OFTEN else pytest.mark.slow)
        for case in [*itertools.product(ATTENTIONS, WIRINGS), (None, "luong")]
        if case != ("location-aware", "luong")
    )
)
typical_wirings = wirings_of(*TYPICAL)


# The contract.


def test_names_shapes_and_dtypes(seed):
    model = make()

    assert model.name == "lstm_seq2seq"
    assert {name: x.shape for name, x in model.input.items()} == {
        "source_ids": (None, None),
        "target_ids": (None, None),
    }
    assert model.output_shape == (None, None, 14)
    assert model.output_names == ["logits"]


@pytest.mark.parametrize("tie_embeddings", [False, True])
def test_round_trip_through_a_file(seed, tmp_path, tie_embeddings):
    model = make(
        "general",
        "feeding",
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=0.1,
        tie_embeddings=tie_embeddings,
        name="translator",
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(
        logits_of(loaded, SOURCE, TARGET), logits_of(model, SOURCE, TARGET)
    )


def test_config_can_be_read_in_another_dtype(seed):
    config = make("bahdanau", "bahdanau", dtype="mixed_bfloat16").get_config()
    model = LSTMSeq2Seq.from_config({**config, "dtype": "float32"})

    assert {layer.compute_dtype for layer in model._flatten_layers()} == {
        "float32"
    }


def test_tied_embeddings_have_one_matrix(seed):
    weights = make(tie_embeddings=True).weights

    assert sum(14 in weight.shape for weight in weights) == 1


@pytest.mark.parametrize(
    "wiring, dtype",
    [
        ("luong", "mixed_float16"),
        ("feeding", "mixed_bfloat16"),
        ("bahdanau", "mixed_float16"),
    ],
)
def test_half_precision(seed, wiring, dtype):
    whole = make("bahdanau", wiring)
    half = make("bahdanau", wiring, dtype=dtype)
    half.set_weights(whole.get_weights())
    logits = half({"source_ids": SOURCE, "target_ids": TARGET})

    assert ops.dtype(logits) == "float32"
    np.testing.assert_allclose(
        ops.convert_to_numpy(logits), logits_of(whole, SOURCE, TARGET), atol=0.2
    )


# Two ways to one answer.


def assert_steps_equal_the_whole(model):
    np.testing.assert_allclose(
        logits_step_by_step(model, SOURCE, TARGET),
        logits_of(model, SOURCE, TARGET),
        atol=1e-5,
    )


@every_wiring
def test_step_by_step(seed, attention, wiring):
    assert_steps_equal_the_whole(make(attention, wiring))


def test_step_by_step_in_one_direction(seed):
    assert_steps_equal_the_whole(make(bidirectional=False))


@pytest.mark.parametrize(
    "cell", [pytest.param("tanh", marks=pytest.mark.slow), "gru"]
)
@wirings_of(
    ("dot", "feeding"),
    ("bahdanau", "bahdanau"),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in TYPICAL
        if case[0] not in ("dot", "bahdanau")
    ),
)
def test_step_by_step_with_two_layers_of(seed, attention, wiring, cell):
    model = make(attention, wiring, cell=cell, num_decoder_layers=2)
    assert_steps_equal_the_whole(model)
    state = model.encode({"source_ids": SOURCE})["decoder"]
    assert len(state["hidden"]) == 2 and not state["cell"]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_padding_changes_nothing_with_gru_cells(seed, bidirectional):
    """The states that the decoder starts from are those of real tokens."""
    model = make(cell="gru", bidirectional=bidirectional, num_encoder_layers=2)
    source = np.pad(SOURCE, [(0, 0), (0, 3)], constant_values=PAD)
    np.testing.assert_allclose(
        logits_of(model, source, TARGET),
        logits_of(model, SOURCE, TARGET),
        atol=1e-5,
    )


def test_gru_round_trip_through_a_file(seed, tmp_path):
    model = make("general", cell="gru")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        logits_of(loaded, SOURCE, TARGET), logits_of(model, SOURCE, TARGET)
    )


@typical_wirings
def test_hypotheses_share_the_memory_of_their_item(seed, attention, wiring):
    model = make(attention, wiring)
    state = model.encode({"source_ids": SOURCE})
    memory = state.pop("memory")
    state = keras.tree.map_structure(
        lambda x: ops.repeat(x, 3, axis=0), state
    ) | {"memory": memory}
    columns = np.random.randint(4, 14, size=(4, 6))
    steps = []
    for token_ids in columns:
        logits, state = model.decode_step(ops.array(token_ids), state)
        steps.append(ops.convert_to_numpy(logits))

    np.testing.assert_allclose(
        np.stack(steps, axis=1),
        logits_of(model, np.repeat(SOURCE, 3, axis=0), columns.T),
        atol=1e-5,
    )
    assert state["memory"] is memory


def test_in_a_graph(seed):
    model = make("dot", "feeding", dropout=0.5)
    inputs = {"source_ids": SOURCE, "target_ids": TARGET}

    np.testing.assert_allclose(
        model.predict(inputs, verbose=0),
        logits_of(model, SOURCE, TARGET),
        atol=1e-5,
    )


def test_deeper_decoder_starts_from_the_top_of_the_encoder(seed):
    model = make(num_encoder_layers=2, num_decoder_layers=3)
    last = model.encode({"source_ids": SOURCE})["decoder"]

    assert len(last["hidden"]) == len(last["cell"]) == 3
    assert last["hidden"][1] is last["hidden"][2]
    assert last["hidden"][0] is not last["hidden"][1]


# Influence.


@typical_wirings
def test_padding_changes_nothing(seed, attention, wiring):
    model = make(attention, wiring)
    source = np.pad(SOURCE, [(0, 0), (0, 3)], constant_values=PAD)
    target = np.pad(TARGET, [(0, 0), (0, 3)], constant_values=PAD)

    np.testing.assert_allclose(
        logits_of(model, source, target)[:, :5],
        logits_of(model, SOURCE, TARGET),
        atol=1e-5,
    )


@typical_wirings
def test_later_targets_change_nothing(seed, attention, wiring):
    model = make(attention, wiring)
    logits = logits_of(model, SOURCE, TARGET)
    target = TARGET.copy()
    target[0, 3] = 11
    changed = logits_of(model, SOURCE, target)

    np.testing.assert_array_equal(changed[:, :3], logits[:, :3])
    assert np.abs(changed[0, 3:] - logits[0, 3:]).min(axis=-1).max() > 0


def test_each_source_token_matters(seed):
    """Each change is in a row of its own."""
    model = make()
    source = np.repeat(SOURCE, [6, 1], axis=0)
    target = np.repeat(TARGET, [6, 1], axis=0)
    logits = logits_of(model, source, target)
    source[range(6), range(6)] = 10
    changed = logits_of(model, source, target)

    assert np.abs(changed[:6] - logits[:6]).max(axis=(1, 2)).min() > 1e-4
    np.testing.assert_array_equal(changed[6], logits[6])


@typical_wirings
def test_source_of_padding_alone(seed, attention, wiring):
    model = make(attention, wiring)
    source = np.concatenate([SOURCE, np.full_like(SOURCE[:1], PAD)])
    target = np.concatenate([TARGET, TARGET[:1]])

    assert np.isfinite(logits_of(model, source, target)).all()


@typical_wirings
def test_attention_weights(seed, attention, wiring):
    model = make(attention, wiring)
    inputs = {"source_ids": SOURCE, "target_ids": TARGET}
    if attention is None:
        with pytest.raises(ValueError, match="no attention weights"):
            model.attention_weights(inputs)
        return

    weights = ops.convert_to_numpy(model.attention_weights(inputs))

    assert weights.shape == (2, 5, 6)
    assert weights.dtype == "float32"
    assert not weights[1, :, 3:].any()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)


# Errors.


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"units": 7}, "even .* Received: units=7"),
        ({"num_encoder_layers": 0}, "Received: num_encoder_layers=0"),
        ({"num_decoder_layers": 0}, "Received: num_decoder_layers=0"),
        ({"num_decoder_layers": 0.5}, "Received: num_decoder_layers=0.5"),
        ({"source_vocab_size": 0}, "Received: source_vocab_size=0"),
        ({"target_vocab_size": 0}, "Received: target_vocab_size=0"),
        ({"embedding_dim": 0}, "Received: embedding_dim=0"),
        ({"units": 0}, "Received: units=0"),
        ({"dropout": float("nan")}, "Received: dropout=nan"),
        ({"dropout": -0.1}, "Received: dropout=-0.1"),
        ({"cell": "rnn"}, "Received: cell='rnn'"),
        ({"attention": None, "input_feeding": True}, "needs attention"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    fitting = {
        "source_vocab_size": 12,
        "target_vocab_size": 14,
        "embedding_dim": 6,
        "units": 8,
        "attention": LuongAttention("dot"),
    }
    with pytest.raises(ValueError, match=message):
        LSTMSeq2Seq(**fitting | arguments)
