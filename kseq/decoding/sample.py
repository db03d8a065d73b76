"""Sampling."""

import math

import tensorflow as tf

from kseq.decoding.generate import generate


def sample(
    model,
    source_ids,
    max_lengths,
    seed,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    length_penalty=1.0,
):
    """Tokens drawn at random, each with the probability of the model.

    Scores are by the model's own probabilities, whatever the tokens were
    drawn with.

    Args:
        model: anything with `encode` and `decode_step`.
        source_ids: (B, S) int32.
        max_lengths: (B,) int32, most tokens of each answer, END included.
        seed: int, or int32 scalar; the same seed draws the same answers.
        temperature: float, the logits are divided by it.
        top_k: int, only the k likeliest tokens are drawn; 0 for all.
        top_p: float, only the fewest likeliest tokens are drawn that have
            this probability together.
        length_penalty: float, see `penalized_scores`.

    Returns:
        Hypotheses, N = 1.

    Raises:
        ValueError: if `temperature` is not positive, `top_k` is negative or
            `top_p` not in (0, 1].

    Reference:
        Holtzman et al. 2020, arXiv:1904.09751, section 3.1 (top p).
    """
    _check_arguments(temperature, top_k, top_p)

    def draw(log_probs, position):
        log_probs = log_probs / temperature
        if top_k:
            log_probs = _likeliest_tokens(log_probs, top_k)
        if top_p < 1:
            log_probs = _nucleus(log_probs, top_p)
        return tf.random.stateless_categorical(
            log_probs, 1, seed=[seed, position], dtype=tf.int32
        )[:, 0]

    return generate(model, source_ids, max_lengths, draw, length_penalty)


def _check_arguments(temperature, top_k, top_p):
    if temperature <= 0:
        raise ValueError(
            f"temperature must be positive. Received: temperature={temperature}"
        )
    if top_k < 0:
        raise ValueError(f"top_k must not be negative. Received: top_k={top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be in (0, 1]. Received: top_p={top_p}")


def _likeliest_tokens(log_probs, top_k):
    top_k = min(top_k, log_probs.shape[-1])
    least = tf.math.top_k(log_probs, top_k).values[:, -1:]
    return tf.where(log_probs < least, -math.inf, log_probs)


def _nucleus(log_probs, top_p):
    falling = tf.sort(log_probs, direction="DESCENDING")
    before = tf.cumsum(tf.nn.softmax(falling), axis=-1, exclusive=True)
    inside = tf.where(before < top_p, falling, math.inf)
    least = tf.reduce_min(inside, axis=-1, keepdims=True)
    return tf.where(log_probs < least, -math.inf, log_probs)
