"""Cross-entropy whose classes are the other rows of the global batch."""

import tensorflow as tf

from kseq.models.exact_model import TokenLosses

_EXCLUDED = -1e9


def in_batch_losses(
    similarity,
    sources,
    targets,
    target_ids,
    sample_weight=None,
    label_smoothing=0.0,
):
    """Softmax cross-entropy of each target among those of the global batch.

        loss_i = -log softmax_j(similarity(source_i, target_j))_i

    On several devices the targets of all of them are candidates, so that the
    loss, and its gradient on every device, are those of one device.

    Args:
        similarity: function of vectors (B, D) and (A, D), gives logits (B, A).
        sources: (B, D) float32.
        targets: (B, D) float32.
        target_ids: (B, T) int. Of targets with the same ids, one is a
            candidate: the right one.
        sample_weight: (B,) or (B, T) float, or None. Rows of zeros are no
            candidates, and have no loss.
        label_smoothing: float in [0, 1), probability spread evenly over the
            candidates.

    Returns:
        `TokenLosses` of (B,). The weights of (B, T) are 1 for each row that
        has one.

    Reference:
        Henderson et al. 2017, arXiv:1705.00652: multiple negatives.
    """
    weight = _row_weight(sample_weight, sources)
    is_real = weight > 0
    # One tensor, gathered at once.
    parts = [targets, is_real[:, None], _hashes(target_ids)]
    rows = tf.concat([tf.cast(part, tf.float32) for part in parts], axis=1)
    first, every = _rows_of_all_replicas(rows)
    dim = targets.shape[-1]
    candidates, is_candidate = every[:, :dim], every[:, dim] > 0
    hashes, own_hashes = every[:, dim + 1 :], rows[:, dim + 1 :]

    # As floats: TensorFlow compares int32 on the CPU, also for a GPU.
    places = tf.range(tf.cast(tf.shape(every)[0], tf.float32))
    own_places = places[first : first + tf.shape(rows)[0]]
    is_right = own_places[:, None] == places  # (B, A)
    is_equal = tf.reduce_all(own_hashes[:, None] == hashes, axis=-1)
    admitted = is_right | (is_candidate & ~is_equal)

    logits = similarity(sources, candidates)
    logits = tf.where(admitted, logits, _EXCLUDED)
    log_probs = tf.nn.log_softmax(logits)
    likelihood = -tf.reduce_sum(tf.where(is_right, log_probs, 0.0), axis=1)
    loss = likelihood
    if label_smoothing:
        total = tf.reduce_sum(tf.where(admitted, log_probs, 0.0), axis=1)
        count = tf.math.count_nonzero(admitted, axis=1, dtype=tf.float32)
        loss = (1 - label_smoothing) * loss - label_smoothing * total / count
    return TokenLosses(
        loss,
        weight,
        likelihood=tf.stop_gradient(likelihood),
        right=tf.argmax(logits, axis=1) == tf.cast(own_places, tf.int64),
    )


def _hashes(ids):
    """Hashes of rows, (B, T) -> (B, 3) float32, integers below 2^21.

    Only two in 2^40 pairs agree by chance. Comparing all ids of all pairs of
    rows would take much memory.
    """
    factors = tf.random.stateless_uniform(
        (tf.shape(ids)[1],),
        seed=(1, 2),
        minval=None,
        maxval=None,
        dtype=tf.int64,
    )
    # Odd, and multiplied modulo 2^64.
    totals = tf.reduce_sum(tf.cast(ids, tf.int64) * (2 * factors + 1), axis=1)
    parts = [tf.bitwise.right_shift(totals, shift) for shift in (1, 22, 43)]
    return tf.bitwise.bitwise_and(tf.stack(parts, axis=1), 2**21 - 1)


def _row_weight(sample_weight, sources):
    """One weight for each row, (B,) float32."""
    if sample_weight is None:
        return tf.ones_like(sources[:, 0])
    weight = tf.cast(sample_weight, tf.float32)
    if weight.shape.rank == 1:
        return weight
    return tf.cast(tf.reduce_any(weight > 0, axis=1), tf.float32)


def _rows_of_all_replicas(rows):
    """The index of the first of these rows among all, and all, (A, D).

    Gradients pass from those of the global batch to those of each replica.
    """
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return 0, rows
    counts = replica.all_gather(tf.shape(rows)[:1], axis=0)
    first = tf.reduce_sum(counts[: replica.replica_id_in_sync_group])
    return first, replica.all_gather(rows, axis=0)
