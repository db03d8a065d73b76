"""Minimum risk training: a model learns from the scores of its own answers."""

import tensorflow as tf

from kseq.decoding import Sampling
from kseq.decoding.generate import generate
from kseq.decoding.loops import INTEGER, arange
from kseq.decoding.start_decoding import make_items
from kseq.models.cross_entropy import cross_entropy
from kseq.models.row_hashes import hash_rows, random_of_hashes
from kseq.ops import padding_mask
from kseq.user_error import ArgumentError, check_integers, check_number

_LONGEST = 4  # n-grams
_MORE = 5  # tokens of an answer than one and a half times the reference


def check_minimum_risk(model, weight, samples):
    """Refuses the arguments of `compile` that are out of range.

    Raises:
        ArgumentError: also if the model generates no answers.
    """
    check_number("minimum_risk", weight, 0, 1)
    check_integers(risk_samples=samples, minimum=2, maximum=1000)
    answers = hasattr(model, "encode") and hasattr(model, "decode_step")
    if weight and not (answers and "target_ids" in model.input):
        raise ArgumentError(
            "minimum_risk needs a model that generates answers. "
            f"Received: minimum_risk={weight}, a {type(model).__name__}"
        )


def sample_answers(model, inputs, labels):
    """Answers to a batch that the model samples, for `risk_losses`.

    The model predicts as in a search, without dropout. The answers to a row
    depend on the weights, the row and the number of updates. They end at END,
    or after one and a half times the tokens of the reference and five.

    Args:
        model: `ExactModel`, compiled, with `encode` and `decode_step`.
        inputs: dict of its inputs.
        labels: (B, T) int, END after the last one, then PAD.

    Returns:
        (B, K, T') int64.
    """
    samples = model.risk_samples

    def draw(log_probs, position, hashes):
        places = tf.cast(position, INTEGER) * samples + arange(samples)
        random = random_of_hashes(hashes[:, None], places)
        return _draw(log_probs, tf.reshape(random, (-1, 1)))

    sampling = Sampling(num_samples=samples)
    steps = generate(sampling, model, draw, False, samples, samples)
    steps = steps._replace(hypotheses=lambda ids, log_probs: ids)
    lengths = tf.math.count_nonzero(padding_mask(labels), axis=1)
    hashes = hash_rows(labels, 0, model.optimizer.iterations)
    limits = lengths + lengths // 2 + _MORE
    answers = steps.run(make_items(inputs, limits, None, hashes))
    if not model.jit_compile:
        return answers
    # XLA compiles what follows once for each shape of the labels.
    length = tf.shape(labels)[1]
    batch, _, longest = tf.unstack(tf.shape(answers))
    more = length + length // 2 + _MORE - longest
    padding = tf.zeros((batch, samples, more), INTEGER)
    return tf.concat([answers, padding], axis=2)


def _draw(log_probs, random):
    """Tokens (R,) int64 of log-probabilities (R, V), by numbers (R, 1)."""
    sums = tf.cumsum(tf.exp(log_probs), axis=1)
    below = tf.math.count_nonzero(sums <= random * sums[:, -1:], axis=1)
    return tf.minimum(below, log_probs.shape[1] - 1)  # if sums are rounded


def risk_losses(model, inputs, labels, answers):
    """The mean risk of the answers to each row, (B,) float32.

    The risk of an answer is 1 - GLEU. The gradient is an estimate, without
    bias, of that of the risk which the model expects; the baseline of an
    answer is the mean risk of the others:

        1/K sum_k (risk_k - mean of the others) grad log p(answer_k)

    Here p has no dropout either. With it, the answers would be those of another
    model: it makes some of them so unlikely that training diverges.

    Args:
        model: `ExactModel`.
        inputs: dict of its inputs.
        labels: (B, T) int, END after the last one, then PAD.
        answers: (B, K, T') int64, of `sample_answers`.

    Reference:
        Shen et al. 2016, arXiv:1512.02433, section 3; for the baseline, Luo
        2020, arXiv:2003.09971.
    """
    batch, samples, length = tf.unstack(tf.shape(answers))
    risks = 1 - gleu(answers, tf.cast(labels, INTEGER))
    others = tf.reduce_sum(risks, axis=1, keepdims=True) - risks
    count = tf.cast(samples, tf.float32)
    advantages = risks - others / (count - 1)

    rows = tf.reshape(answers, (batch * samples, length))
    repeated = {
        name: tf.repeat(_not_int32(inputs[name]), samples, axis=0)
        for name in model.input
    }
    fed = [repeated["target_ids"][:, :1], rows[:, :-1]]
    repeated["target_ids"] = tf.concat(fed, axis=1)
    losses, *_ = cross_entropy(rows, model(repeated, training=False))
    losses *= tf.cast(padding_mask(rows), tf.float32)
    losses = tf.reduce_sum(tf.reshape(losses, (batch, samples, length)), axis=2)
    gradients = -tf.reduce_mean(advantages * losses, axis=1)
    gradients -= tf.stop_gradient(gradients)  # the value is the risk alone
    return tf.reduce_mean(risks, axis=1) + gradients


def _not_int32(tensor):
    """On a GPU, TensorFlow copies int32 to the host in order to reshape it."""
    tensor = tf.convert_to_tensor(tensor)
    return tf.cast(tensor, INTEGER) if tensor.dtype == tf.int32 else tensor


def gleu(answers, references):
    """The score of answers: the smaller of recall and precision of n-grams.

    Those of one to four tokens are counted together, END included, each at
    most as often as it is in the other text.

    Args:
        answers: (B, K, T) int64, padded with PAD.
        references: (B, T') int64, padded with PAD.

    Returns:
        (B, K) float32 from 0 to 1.

    Reference:
        Wu et al. 2016, arXiv:1609.08144, section 4.3.
    """
    # At both places begins the same token, and for n > 1 the same n-gram.
    is_same, is_own = (
        _are_same(answers, texts) for texts in (references[:, None], answers)
    )
    is_ngram, is_other = padding_mask(answers), padding_mask(references)
    same, own = is_same, is_own
    matches, size, other_size = 0.0, 0.0, 0.0
    for n in range(1, _LONGEST + 1):
        if n > 1:
            same = same[..., :-1, :-1] & is_same[..., n - 1 :, n - 1 :]
            own = own[..., :-1, :-1] & is_own[..., n - 1 :, n - 1 :]
        there = tf.reduce_sum(tf.cast(same, tf.float32), axis=-1)
        so_far = tf.linalg.band_part(tf.cast(own, tf.float32), -1, 0)
        so_far = tf.reduce_sum(so_far, axis=-1)
        matches += _count(is_ngram[..., n - 1 :] & (so_far <= there))
        size += _count(is_ngram[..., n - 1 :])
        other_size += _count(is_other[..., n - 1 :])
    return matches / tf.maximum(tf.maximum(size, other_size[:, None]), 1.0)


def _are_same(ids, others):
    """(..., T, T') bool: both tokens are the same, and none is PAD."""
    is_token = padding_mask(ids)[..., None]
    return is_token & (ids[..., None] == others[..., None, :])


def _count(mask):
    return tf.reduce_sum(tf.cast(mask, tf.float32), axis=-1)
