"""Against all ways to read a label at each position."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq import layers, models
from kseq.control_tokens import END, PAD, START
from kseq.decoding import BeamSearch, GreedySearch, sequence_scores
from kseq.decoding.ctc_prefix_scores import (
    CTCMemory,
    ctc_prefix_scores,
    empty_prefixes,
)

A, B = 4, 5
VOCABULARY = 6
POSITIONS = 4


def read(path):
    """The labels of a path: equal neighbours are one, PAD is none."""
    merged = [label for label, _ in itertools.groupby(path)]
    return tuple(label for label in merged if label != PAD)


def probabilities(log_probs):
    """The probability of each answer, by all paths."""
    found = {}
    for path in itertools.product((PAD, A, B), repeat=len(log_probs)):
        log_prob = sum(
            row[label] for row, label in zip(log_probs, path, strict=True)
        )
        answer = read(path)
        found[answer] = found.get(answer, 0.0) + math.exp(log_prob)
    return found


def of_prefix(found, prefix):
    return sum(
        probability
        for answer, probability in found.items()
        if answer[: len(prefix)] == prefix
    )


@pytest.fixture(scope="module")
def memory():
    """Two items, of four and of three positions; only PAD, A and B occur."""
    draw = np.random.default_rng(3)
    logits = draw.normal(size=(2, POSITIONS, VOCABULARY)).astype("float32")
    logits[:, :, [1, START, END]] = -1e4
    mask = [[True] * 4, [True] * 3 + [False]]
    return CTCMemory(tf.nn.log_softmax(logits), tf.constant(mask))


@pytest.mark.parametrize(
    "prefix", [(), (A,), (B,), (A, A), (A, B), (A, B, A), (B, B)]
)
def test_scores_are_those_of_all_paths(memory, prefix):
    prefixes = empty_prefixes(memory)
    for label in (START, *prefix):
        scores, prefixes = ctc_prefix_scores(
            memory, prefixes, tf.fill([2], label)
        )
    for item, length in enumerate((4, 3)):
        found = probabilities(memory.log_probs[item, :length].numpy())
        begun = of_prefix(found, prefix)
        expected = {
            A: of_prefix(found, (*prefix, A)),
            B: of_prefix(found, (*prefix, B)),
            END: found.get(prefix, 0.0),
        }
        for label, probability in expected.items():
            score = math.exp(scores[item, label])
            assert score == pytest.approx(probability / begun, abs=1e-5)


def test_the_scores_of_an_answer_sum_to_that_of_ctc(memory):
    labels = tf.constant([[A, A, B], [B, A, PAD]])
    prefixes, total = empty_prefixes(memory), np.zeros(2)
    fed = [[START, START], [A, B], [A, A], [B, END]]
    wanted = [[A, B], [A, A], [B, END], [END, PAD]]
    for tokens, following in zip(fed, wanted, strict=True):
        scores, prefixes = ctc_prefix_scores(
            memory, prefixes, tf.constant(tokens)
        )
        for item, label in enumerate(following):
            total[item] += scores[item, label] if label else 0
    losses = tf.nn.ctc_loss(
        labels,
        memory.log_probs,
        [3, 2],
        [4, 3],
        logits_time_major=False,
        blank_index=PAD,
    )
    np.testing.assert_allclose(total[1], -losses[1], atol=1e-4)
    # Two equal labels and a third need four positions with one between.
    np.testing.assert_allclose(total[0], -losses[0], atol=1e-4)


def test_hypotheses_of_an_item_are_consecutive(memory):
    """Two of each item, as a beam has them, as if they were alone."""
    first = empty_prefixes(memory)
    twice = tf.nest.map_structure(lambda x: tf.repeat(x, 2, axis=0), first)
    tokens = tf.constant([A, B, B, A])
    together, _ = ctc_prefix_scores(memory, twice, tokens)
    for column in (0, 1):
        alone, _ = ctc_prefix_scores(memory, first, tokens[column::2])
        np.testing.assert_allclose(together[column::2], alone, atol=1e-6)


def test_long_memories_are_exact():
    """A thousand positions: the scores stay logarithms of probabilities."""
    draw = np.random.default_rng(1)
    logits = 5 * draw.normal(size=(1, 1000, VOCABULARY)).astype("float32")
    memory = CTCMemory(
        tf.nn.log_softmax(logits), tf.ones((1, 1000), dtype=tf.bool)
    )
    prefixes = empty_prefixes(memory)
    labels = draw.integers(A, VOCABULARY, size=100)
    total = 0.0
    step = tf.function(ctc_prefix_scores, autograph=False)
    scores, prefixes = step(memory, prefixes, tf.constant([START]))
    for label in labels:
        total += float(scores[0, label])
        scores, prefixes = step(
            memory, prefixes, tf.constant([label], tf.int32)
        )
    total += float(scores[0, END])
    # In a graph: eagerly, its loop over the positions takes long.
    ctc_loss = tf.function(tf.nn.ctc_loss, autograph=False)
    loss = ctc_loss(
        tf.constant(labels[None], tf.int32),
        memory.log_probs,
        tf.constant([100]),
        tf.constant([1000]),
        logits_time_major=False,
        blank_index=PAD,
    )
    assert total == pytest.approx(-float(loss[0]), rel=1e-4)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(2)
    model = models.LSTMSeq2Seq(
        *(VOCABULARY, VOCABULARY),
        embedding_dim=8,
        units=8,
        attention=layers.BahdanauAttention(4),
        order="bahdanau",
        ctc=0.5,
    )
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    # Short answers are the best: none is cut by the limit.
    bias = model.projection.bias.numpy()
    bias[END] += 6
    model.projection.bias.assign(bias)
    bias = model.ctc_logits.bias.numpy()
    bias[PAD] += 4
    model.ctc_logits.bias.assign(bias)
    return model


SOURCE_IDS = tf.constant([[4, 5, 4, 4, 5, 3], [5, 4, 5, 3, 0, 0]])


@pytest.fixture(scope="module")
def answers(model):
    """All that are short, and their scores by the model and by CTC.

    The scores are (answers, items), each of an answer as a whole.
    """
    answers, own, ctc = [], [], []
    for length in range(4):
        some = [*itertools.product((1, A, B), repeat=length)]
        labels = [[*answer, END] for answer in some for _ in SOURCE_IDS]
        labels = tf.constant(labels)
        start = tf.fill((len(labels), 1), START)
        inputs = {
            "source_ids": tf.tile(SOURCE_IDS, [len(some), 1]),
            "target_ids": tf.concat([start, labels[:, :-1]], axis=1),
        }
        logits, _, memory, mask = model(inputs, with_memory=True)
        own.append(
            sequence_scores(
                logits, labels, tf.ones(labels.shape), length_penalty=0.0
            )
        )
        loss = tf.nn.ctc_loss(
            labels,
            model.ctc_logits(memory),
            tf.fill([len(labels)], length),
            tf.reduce_sum(tf.cast(mask, tf.int32), axis=1),
            logits_time_major=False,
            blank_index=PAD,
        )
        ctc.append(tf.where(tf.math.is_finite(loss), -loss, -1e30))
        answers += some
    own, ctc = (np.concatenate(x).reshape(-1, 2) for x in (own, ctc))
    return answers, own, ctc


@pytest.mark.parametrize("ctc_weight", [0.0, 0.4, 1.0])
def test_a_beam_finds_the_best_of_both(model, answers, ctc_weight):
    answers, own, ctc = answers
    totals = (1 - ctc_weight) * own + ctc_weight * ctc
    order = np.argsort(-totals, axis=0)

    search = BeamSearch(200, length_penalty=0.0, ctc_weight=ctc_weight)
    inputs = {"source_ids": SOURCE_IDS}
    found = search(model, inputs, tf.constant([4, 4]), n_best=3)
    for item in range(2):
        for rank in range(3):
            best = order[rank, item]
            ids = [n for n in found.ids[item, rank].numpy() if n != PAD]
            assert (*answers[best], END) == tuple(ids)
            assert found.scores[item, rank].numpy() == pytest.approx(
                totals[best, item], abs=1e-3
            )


def test_a_beam_of_one_is_greedy_with_ctc_too(model):
    inputs = {"source_ids": tf.constant([[4, 5, 4, 3], [5, 3, 0, 0]])}
    limits = tf.constant([6, 6])
    beam = BeamSearch(1, ctc_weight=0.5)(model, inputs, limits)
    greedy = GreedySearch(ctc_weight=0.5)(model, inputs, limits)
    np.testing.assert_array_equal(beam.ids, greedy.ids)
    np.testing.assert_array_equal(beam.scores, greedy.scores)


def test_a_model_without_ctc_is_refused():
    model = models.LSTMSeq2Seq(9, 9, embedding_dim=4, units=4)
    inputs = {"source_ids": tf.constant([[4, 3]])}
    with pytest.raises(ValueError, match="trained with CTC"):
        GreedySearch(ctc_weight=0.5)(model, inputs, tf.constant([3]))
    with pytest.raises(ValueError, match="ctc_weight=2"):
        GreedySearch(ctc_weight=2)
