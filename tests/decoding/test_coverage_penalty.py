"""The coverage penalty, step by step and over whole answers."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import BeamSearch, Ensemble
from tests.models.seq2seq_systems import VOCAB, model_of
from tests.slow import others_slow

MODELS = {
    "transformer": lambda: model_of("transformer"),
    "convolutional": lambda: model_of("convolutional"),
    "input feeding": lambda: model_of("lstm"),
    "turns": lambda: model_of("chat"),
    "luong": lambda: model_of("dot, luong"),
    "ensemble": lambda: Ensemble(
        [model_of("transformer"), model_of("dot, luong")]
    ),
}
SOURCE = np.array([[4, 5, 6, 3, 0], [9, 7, 5, 8, 3]])
TURNS = np.array([[[4, 5, 3], [0, 0, 0]], [[9, 3, 0], [7, 8, 3]]])


def gains(model, source, answers, penalty):
    """By NumPy, from the weights over whole answers."""
    count = len(answers)
    start = np.full((count, 1), START)
    target = np.concatenate([start, answers[:, :-1]], axis=1)
    inputs = {
        "source_ids": np.repeat(source[None], count, axis=0),
        "target_ids": target,
    }
    weights = np.array(model.attention_weights(inputs))  # (N, T, S)
    coverage = (weights * (answers != PAD)[:, :, None]).sum(axis=1)
    coverage = np.clip(coverage[:, np.ravel(source != PAD)], 1e-6, 1)
    labels = np.array(model(inputs), "float64")
    labels -= np.log(np.exp(labels).sum(axis=2, keepdims=True))
    labels = np.take_along_axis(labels, answers[:, :, None], axis=2)[..., 0]
    log_probs = np.where(answers != PAD, labels, 0).sum(axis=1)
    return log_probs + penalty * np.log(coverage).sum(axis=1)


@pytest.mark.parametrize(
    "name",
    # The ensemble has the others.
    others_slow(MODELS, ["convolutional", "input feeding", "ensemble"]),
)
def test_wide_beam_is_exhaustive_search(name):
    model = MODELS[name]()
    source = TURNS if name == "turns" else SOURCE
    tokens = [i for i in range(VOCAB) if i not in (PAD, START)]
    answers = np.array(
        [[END, PAD]]
        + [list(pair) for pair in itertools.product(tokens, repeat=2)]
    )
    answers = answers[(answers[:, 0] != END) | (answers[:, 1] == PAD)]
    search = BeamSearch(200, 0.0, coverage_penalty=2.0)
    best = search(model, {"source_ids": tf.constant(source)}, [2, 2], n_best=5)

    for item in range(2):
        scores = gains(model, source[item], answers, 2.0)
        order = np.argsort(-scores)[:5]
        np.testing.assert_allclose(best.scores[item], scores[order], atol=1e-3)
        np.testing.assert_array_equal(best.ids[item], answers[order])


def test_a_model_without_attention():
    search = BeamSearch(2, coverage_penalty=0.5)
    with pytest.raises(ValueError, match="with attention to its source"):
        search(
            model_of("no attention"),
            {"source_ids": tf.constant(SOURCE)},
            [2, 2],
        )


def test_a_model_that_does_not_give_its_weights(make_model):
    model, encode = make_model(), make_model().encode
    model.attention_weights = None
    model.encode = lambda inputs: {
        **encode(inputs),
        "memory": {"mask": inputs["source_ids"] != PAD},
    }
    model.decode_step = lambda tokens, state: (tf.zeros((2, 7)), state)
    search = BeamSearch(2, coverage_penalty=0.5)
    with pytest.raises(ValueError, match="decode_step replaces"):
        search(model, {"source_ids": tf.constant(SOURCE)}, [2, 2])


def test_a_model_that_does_not_give_its_mask(make_model):
    model = make_model()
    model.attention_weights = None
    search = BeamSearch(2, coverage_penalty=0.5)
    with pytest.raises(ValueError, match="the mask of its source"):
        search(model, {"source_ids": tf.constant(SOURCE)}, [2, 2])


def test_a_model_whose_first_state_has_weights():
    model = model_of("transformer")
    inputs = {"source_ids": tf.constant(SOURCE)}
    search = BeamSearch(3, coverage_penalty=0.5)
    expected, encode = search(model, inputs, [3, 3]), model.encode
    model.encode = lambda inputs: {
        **encode(inputs),
        "attention": tf.zeros(tf.shape(inputs["source_ids"])),
    }
    scores = search(model, inputs, [3, 3]).scores
    np.testing.assert_allclose(scores, expected.scores, atol=1e-5)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 101, "1"])
def test_bad_penalties(value):
    with pytest.raises(ValueError, match="coverage_penalty"):
        BeamSearch(2, coverage_penalty=value)
    with pytest.raises(ValueError, match="beam of two or more"):
        BeamSearch(1, coverage_penalty=0.5)
