import functools

import numpy as np
import pytest
from keras import ops

from kseq.control_tokens import END, PAD, START
from kseq.layers import (
    LuongAttention,
)
from kseq.models import LSTMSeq2Seq
from tests.models.seq2seq_systems import lstm

SOURCE = np.array([[5, 6, 7, 8, 9, END], [7, 4, END, PAD, PAD, PAD]])
TARGET = np.array([[START, 8, 9, 5, 6], [START, 6, PAD, PAD, PAD]])


built = functools.cache(lstm)


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


TYPICAL = [
    ("bahdanau", "bahdanau"),
    ("dot", "feeding"),
    ("window", "luong"),
    ("location", "feeding"),
    (None, "luong"),
]
typical_wirings = pytest.mark.parametrize("attention, wiring", TYPICAL)


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


def test_config_can_be_read_in_another_dtype(seed):
    config = make("bahdanau", "bahdanau", dtype="mixed_bfloat16").get_config()
    model = LSTMSeq2Seq.from_config({**config, "dtype": "float32"})

    assert {layer.compute_dtype for layer in model._flatten_layers()} == {
        "float32"
    }


def test_tied_embeddings_have_one_matrix(seed):
    weights = make(tie_embeddings=True).weights

    assert sum(14 in weight.shape for weight in weights) == 1


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


@pytest.mark.parametrize("cell", ["tanh", "gru"])
def test_only_an_lstm_has_cell_states(seed, cell):
    model = make(cell=cell, num_decoder_layers=2)
    state = model.encode({"source_ids": SOURCE})["decoder"]
    assert len(state["hidden"]) == 2 and not state["cell"]


# Influence.


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
        ({"attention": None, "context_gate": True}, "needs attention"),
        ({"copy": True}, "one vocabulary. .*source_vocab_size=12, target_voc"),
        (
            {"copy": True, "attention": None, "source_vocab_size": 14},
            "copy needs attention, .*attention=None",
        ),
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
