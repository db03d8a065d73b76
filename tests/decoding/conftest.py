import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.decoding import sequence_scores


class TinyModel:
    """Logits from the source, the last two tokens and the mean of all so far.

    Its state has what a real one has: a memory, a tensor of fixed size and a
    cache that grows from nothing, two levels deep.
    """

    def __init__(self, seed, vocab_size=7, dim=6, bias=None):
        random = np.random.default_rng(seed)

        def table(*shape):
            return tf.constant(random.normal(size=shape), tf.float32)

        self.source, self.target = table(20, dim), table(vocab_size, dim)
        self.output = 2 * table(3 * dim, vocab_size)
        self.bias = np.zeros(vocab_size, "float32")
        for token, value in (bias or {}).items():
            self.bias[token] = value

    def encode(self, inputs):
        """Of ids, or of features (B, S, dim) with their mask."""
        if "source" in inputs:
            embeddings, mask = inputs["source"], inputs["source_mask"]
        else:
            source_ids = inputs["source_ids"]
            embeddings = tf.gather(self.source, source_ids)
            mask = source_ids != PAD
        mask = tf.cast(mask, tf.float32)[:, :, None]
        batch, dim = tf.shape(mask)[0], self.target.shape[1]
        return {
            "memory": (embeddings * mask, mask),
            "last": tf.zeros((batch, dim)),
            "caches": [{"tokens": tf.zeros((batch, 0, dim))}],
        }

    def decode_step(self, token_ids, state):
        embedded = tf.gather(self.target, token_ids)
        cache = state["caches"][0]["tokens"]
        cache = tf.concat([cache, embedded[:, None]], axis=1)
        embeddings, mask = state["memory"]
        context = tf.reduce_sum(embeddings, 1) / tf.reduce_sum(mask, 1)
        items = tf.maximum(tf.shape(context)[0], 1)
        context = tf.repeat(context, tf.shape(token_ids)[0] // items, axis=0)
        features = [tf.reduce_mean(cache, axis=1), state["last"], context]
        logits = tf.tanh(tf.concat(features, axis=-1)) @ self.output
        return logits + self.bias, {
            "memory": state["memory"],
            "last": embedded,
            "caches": [{"tokens": cache}],
        }

    def __call__(self, inputs):
        """(B, T, V) logits, a step for each column of `target_ids`."""
        state, steps = self.encode(inputs), []
        for token_ids in tf.unstack(inputs["target_ids"], axis=1):
            logits, state = self.decode_step(token_ids, state)
            steps.append(logits)
        return tf.stack(steps, axis=1)


@pytest.fixture
def make_model(seed):
    """A constructor of models that differ from run to run."""
    return lambda **kwargs: TinyModel(seed, **kwargs)


@pytest.fixture
def source_ids():
    """Three items of different lengths."""
    ids = [[4, 5, 6, 3, 0], [9, 3, 0, 0, 0], [7, 8, 11, 19, 3]]
    return tf.constant(ids, tf.int32)


@pytest.fixture
def scores_of(source_ids):
    """A function: the scores of answers (B, N, T) from whole sequences."""

    def scores_of(model, ids, inputs=None, **kwargs):
        inputs = inputs or {"source_ids": source_ids}
        columns = []
        for labels in tf.unstack(ids, axis=1):
            start = tf.fill((labels.shape[0], 1), START)
            target_ids = tf.concat([start, labels[:, :-1]], axis=1)
            logits = model({**inputs, "target_ids": target_ids})
            weights = tf.cast(labels != PAD, tf.float32)
            columns.append(sequence_scores(logits, labels, weights, **kwargs))
        return tf.stack(columns, axis=1)

    return scores_of


@pytest.fixture
def traced():
    """A function: a search as a served graph has it, for any batch."""

    def traced(search, model, **kwargs):
        return tf.function(
            lambda source_ids, max_lengths: search(
                model, {"source_ids": source_ids}, max_lengths, **kwargs
            ),
            input_signature=[
                tf.TensorSpec((None, None), tf.int32),
                tf.TensorSpec((None,), tf.int32),
            ],
            autograph=False,
        )

    return traced


@pytest.fixture
def in_graph(traced):
    """A function: what a search in a graph finds."""

    def in_graph(search, model, source_ids, max_lengths, **kwargs):
        max_lengths = tf.constant(max_lengths, tf.int32)
        return traced(search, model, **kwargs)(source_ids, max_lengths)

    return in_graph


@pytest.fixture
def searched():
    """A function: what a search finds eagerly.

    Tracing takes longer than a short search, and `test_greedy_search.py` has
    every search in a graph, too.
    """

    def searched(search, model, source_ids, max_lengths, **kwargs):
        max_lengths = tf.constant(max_lengths, tf.int32)
        return search(model, {"source_ids": source_ids}, max_lengths, **kwargs)

    return searched
