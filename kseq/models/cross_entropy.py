"""Cross-entropy with label smoothing, in few passes over the logits."""

import tensorflow as tf


def cross_entropy(labels, logits, label_smoothing=0.0):
    """Cross-entropy of integer labels, one number for each label.

    In TensorFlow and not in `keras.ops`, which cannot compute the loss of
    smoothed targets in one pass: that alone is 3 % of the training step of a
    small model.

    Args:
        labels: (...,) int.
        logits: (..., V) float.
        label_smoothing: float in [0, 1), probability spread evenly over V.

    Returns:
        A tuple, each (...,): the loss, float32; the negative log-likelihood
        of the label, which is the loss without smoothing and has no gradient,
        float32; whether the label has the highest logit, bool.

    Raises:
        ValueError: if the shapes do not match.

    Reference:
        Szegedy et al. 2016, arXiv:1512.00567, section 7.
    """
    labels = tf.convert_to_tensor(labels)
    logits = tf.cast(logits, tf.float32)
    if not logits.shape[:-1].is_compatible_with(labels.shape):
        raise ValueError(
            "labels must have the shape of the logits without the last axis. "
            f"Received: labels of shape {labels.shape}, "
            f"logits of shape {logits.shape}"
        )
    fixed = tf.stop_gradient(logits)
    of_label = tf.gather(fixed, labels, batch_dims=labels.shape.rank)
    right = of_label == tf.reduce_max(fixed, axis=-1)
    if not label_smoothing:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return loss, tf.stop_gradient(loss), right

    classes = logits.shape[-1]
    spread = label_smoothing / classes
    targets = tf.one_hot(labels, classes, 1 - label_smoothing + spread, spread)
    loss = tf.nn.softmax_cross_entropy_with_logits(targets, logits)

    # loss = lse - (1 - e) z_label - e mean(z);  likelihood = lse - z_label
    shift = label_smoothing * (tf.reduce_mean(fixed, axis=-1) - of_label)
    return loss, tf.stop_gradient(loss) + shift, right
