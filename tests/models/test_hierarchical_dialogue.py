"""`LSTMSeq2Seq` of turns: words, then turns, in encoder and attention."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import BeamSearch
from kseq.layers import (
    BahdanauAttention,
    HierarchicalBahdanauAttention,
    HierarchicalEncoder,
)
from kseq.models import LSTMSeq2Seq, Transformer
from kseq.user_error import ArgumentError
from tests.models.new_weights import new_weights

SOURCE = np.zeros((3, 3, 4), int)
SOURCE[0] = [[5, 6, 7, END], [8, END, 0, 0], [4, 9, END, 0]]
SOURCE[1, :2] = [[9, 4, END, 0], [6, 5, 8, END]]
TARGET = np.array([[START, 8, 9, 5], [START, 6, PAD, PAD], [START, 7, 4, PAD]])
INPUTS = {"source_ids": SOURCE, "target_ids": TARGET}


def made(**settings):
    cell = settings.get("cell", "lstm")
    settings = {
        "source_layer": HierarchicalEncoder(8, cell, dropout=0.1),
        "attention": HierarchicalBahdanauAttention(5),
        "order": "bahdanau",
        "num_encoder_layers": 0,
        **settings,
    }
    return LSTMSeq2Seq(30, 30, embedding_dim=6, units=8, **settings)


@functools.cache
def built():
    """A model, and what its variables were at first."""
    model = made()
    return model, [variable.numpy() for variable in model.variables]


@pytest.fixture
def model(seed):
    return new_weights(*built())


def padded(turns, words):
    more = [(0, 0), (0, turns), (0, words)]
    return INPUTS | {"source_ids": np.pad(SOURCE, more)}


def batch_of(size):
    source = np.random.randint(4, 30, (size, 3, 4))
    source[:1, 1:] = source[1:2, :, 2:] = PAD
    labels = np.random.randint(4, 30, (size, 3))
    target = np.pad(labels, [(0, 0), (1, 0)], constant_values=START)[:, :-1]
    labels[:1, -1] = target[:1, -1] = PAD
    inputs = {"source_ids": source, "target_ids": target}
    return inputs, labels, (labels != PAD).astype("float32")


# The contract.


def test_weights_are_those_of_words_in_turns(model):
    weights = np.array(model.attention_weights(padded(1, 2)))

    assert weights.shape == (3, 4, 24)
    assert weights.dtype == "float32"
    by_turn = weights.reshape(3, 4, 4, 6)
    real = np.array(padded(1, 2)["source_ids"] != PAD)[:, None]
    assert not by_turn[np.broadcast_to(~real, by_turn.shape)].any()
    np.testing.assert_allclose(by_turn.sum((2, 3))[:2], 1, rtol=1e-5)
    assert not by_turn[2].any()


# Two ways to one answer.


def test_search_in_a_graph(model):
    """Scores are those of the whole sequence."""

    @tf.function(
        input_signature=[tf.TensorSpec((None, None, None), tf.int32)],
        autograph=False,
    )
    def searched(source_ids):
        inputs = {"source_ids": source_ids}
        limits = tf.fill(tf.shape(source_ids)[:1], 5)
        return search(model, inputs, limits, n_best=1)

    search = BeamSearch(3)
    best = searched(SOURCE)
    ids = np.array(best.ids[:, 0])
    target = np.pad(ids, [(0, 0), (1, 0)], constant_values=START)[:, :-1]
    log_probs = keras.ops.log_softmax(model(INPUTS | {"target_ids": target}))
    of_ids = np.take_along_axis(np.array(log_probs), ids[..., None], axis=2)
    expected = (of_ids[..., 0] * (ids != PAD)).sum(axis=1)
    lengths = (ids != PAD).sum(axis=1)
    penalty = (search.penalty_offset + lengths) / (search.penalty_offset + 1)
    expected /= penalty**search.length_penalty
    np.testing.assert_allclose(best.scores[:, 0], expected, atol=1e-4)


def test_coverage_by_hand(seed):
    model, plain = made(coverage=0.5), made()
    plain.set_weights(model.get_weights())
    inputs, labels, weights = batch_of(4)
    alphas = np.array(model.attention_weights(inputs)) * weights[:, :, None]
    real = inputs["source_ids"].reshape(4, 12) != PAD
    penalty = ((1 - alphas.sum(axis=1)) ** 2 * real).sum()
    found, without = (
        _loss_of(each, inputs, labels, weights) for each in (model, plain)
    )
    expected = without + 0.5 * penalty / weights.sum()
    assert found == pytest.approx(expected, abs=1e-5)


def _loss_of(model, inputs, labels, weights):
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    return model.evaluate(inputs, labels, sample_weight=weights, verbose=0)[0]


# Influence.


@pytest.mark.parametrize(("turns", "words"), [(0, 2), (2, 0), (1, 3)])
def test_padding_changes_nothing(model, turns, words):
    np.testing.assert_allclose(
        model(padded(turns, words)), model(INPUTS), atol=1e-5
    )


# Learning.


def facts(size, turns=4):
    """Each turn is a key and its value; the last has a key alone.

    There are too many for the states of the turns to carry them all.
    """
    keys = np.argsort(np.random.rand(size, 20))[:, :turns] + 4
    values = np.random.randint(24, 44, (size, turns))
    evidence = np.random.randint(turns, size=size)
    facts = np.stack([keys, values, np.full_like(keys, END)], axis=2)
    asked, fact = np.zeros((size, 1, 3), int), facts[range(size), evidence]
    asked[:, 0, :2] = fact[:, [0, 2]]
    source = np.concatenate([facts, asked], axis=1)
    target = np.pad(fact[:, :1], [(0, 0), (1, 0)], constant_values=START)
    inputs = {"source_ids": source, "target_ids": target}
    return inputs, fact[:, :2], evidence


@pytest.mark.slow
def test_attention_points_at_the_turn_with_the_fact(seed):
    model = LSTMSeq2Seq(
        *(44, 44),
        embedding_dim=32,
        units=64,
        num_encoder_layers=0,
        source_layer=HierarchicalEncoder(64),
        attention=HierarchicalBahdanauAttention(64),
        order="bahdanau",
    )
    model.compile(keras.optimizers.Adam(0.005), clip_norm=1.0)
    for _ in range(800):
        inputs, labels, _ = facts(64)
        model.train_on_batch(inputs, labels, np.ones((64, 2), "float32"))

    inputs, labels, evidence = facts(300)
    answers = model.predict_on_batch(inputs).argmax(axis=-1)
    weights = np.array(model.attention_weights(inputs))[:, 1]
    turns = weights.reshape(300, 5, 3).sum(axis=2).argmax(axis=1)
    assert (answers == labels).all(axis=1).mean() > 0.9
    assert (turns == evidence).mean() > 0.9


# Errors.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": BahdanauAttention(4)}, "HierarchicalBahdanau"),
        ({"num_encoder_layers": 1}, "num_encoder_layers=0"),
        ({"ctc": 0.3}, "ctc=0"),
        ({"source_layer": HierarchicalEncoder(4)}, r"units=8\..*\[4, 4\]"),
        ({"source_layer": HierarchicalEncoder(8, "gru")}, r"'lstm'.*\[8\]"),
    ],
)
def test_arguments_that_do_not_fit(settings, message):
    with pytest.raises(ArgumentError, match=message):
        made(**settings)


def test_attention_of_turns_needs_turns():
    with pytest.raises(ValueError, match="as HierarchicalEncoder returns"):
        made(source_layer=None, num_encoder_layers=1)


def test_a_transformer_reads_no_turns():
    with pytest.raises(ArgumentError, match="needs an LSTMSeq2Seq"):
        Transformer(
            *(30, 30),
            num_encoder_layers=0,
            num_decoder_layers=1,
            model_dim=8,
            ffn_dim=8,
            num_heads=2,
            source_layer=HierarchicalEncoder(4),
        )
