"""Cross-entropy of logits with labels, and divergence of two predictions."""

import tensorflow as tf

from kseq.layers.xla import is_compiled_by_xla
from kseq.user_error import ArgumentError


def cross_entropy(labels, logits, label_smoothing=0.0):
    """Cross-entropy of integer labels, one number for each label.

    In TensorFlow and not in `keras.ops`: the logits are by far the largest
    tensor of most models, and TensorFlow's own loss needs two more for the
    targets and the gradient. Here the softmax is written over the logits and
    the gradient over the softmax, without the targets.

    Args:
        labels: (...,) int of any width.
        logits: (..., V) float.
        label_smoothing: float in [0, 1), probability spread evenly over V.

    Returns:
        A tuple, each (...,): the loss, float32; the negative log-likelihood
        of the label, which is the loss without smoothing and has no gradient,
        float32; whether the label has the highest logit, bool: of equal ones,
        the first, as everywhere an answer is chosen. Of a label beyond the
        classes, loss and likelihood are not numbers.

    Raises:
        ValueError: if there are no labels, if they are no integers, or if the
            shapes do not match.

    Reference:
        Szegedy et al. 2016, arXiv:1512.00567, section 7.
    """
    labels = _integers(labels)
    logits = tf.cast(logits, tf.float32)
    if not logits.shape[:-1].is_compatible_with(labels.shape):
        raise ValueError(
            "labels must have the shape of the logits without the last axis. "
            f"Received: labels of shape {labels.shape}, "
            f"logits of shape {logits.shape}"
        )
    classes = logits.shape[-1] or tf.shape(logits)[-1]
    results = _of_rows(
        tf.reshape(labels, (-1,)),
        tf.reshape(logits, (-1, classes)),
        label_smoothing,
    )
    return tuple(tf.reshape(result, tf.shape(labels)) for result in results)


def _integers(labels):
    """The labels, int32 or int64: rows are counted in their dtype, too."""
    if labels is None:
        raise ArgumentError(
            "The loss of this model needs labels. Received: labels=None"
        )
    labels = tf.convert_to_tensor(labels)
    if not labels.dtype.is_integer:
        raise ArgumentError(
            f"labels must be integers. Received: dtype {labels.dtype.name}"
        )
    is_wide = labels.dtype in (tf.int32, tf.int64)
    return labels if is_wide else tf.cast(labels, tf.int64)


def _of_rows(labels, logits, label_smoothing):
    """`cross_entropy` of labels (R,) and logits (R, V)."""
    classes = logits.shape[-1]
    if classes is None:  # of a model whose candidates are an input
        classes = tf.shape(logits)[-1]
        spread = label_smoothing / tf.cast(classes, tf.float32)
    else:
        spread = label_smoothing / classes
    # XLA makes one kernel of the gradient, from logits in half precision.
    has_xla = is_compiled_by_xla()

    @tf.custom_gradient
    def losses(logits):
        predicted = tf.argmax(logits, axis=-1)
        highest = tf.gather(logits, predicted, batch_dims=1)
        # A CPU refuses a label beyond the classes; XLA and GPUs take another.
        is_class = (labels >= 0) & (labels < classes)
        of_label = tf.gather(logits, labels, batch_dims=1)
        of_label = tf.where(is_class, of_label, float("nan"))
        mean = tf.reduce_mean(logits, axis=-1) if label_smoothing else of_label
        if has_xla:
            normalizer = tf.reduce_logsumexp(logits, axis=-1)
        else:
            # The last of the operations that read the logits overwrites them.
            with tf.control_dependencies([highest, of_label, mean]):
                softmax = tf.nn.softmax(logits)
            # max(softmax(z)) = exp(max(z)) / sum(exp(z))
            normalizer = highest - tf.math.log(tf.reduce_max(softmax, axis=-1))

        def gradient(of_loss, *_):
            """(softmax - targets) times the gradient by the loss."""
            certain = 1 - label_smoothing
            if has_xla:
                predicted = tf.exp(logits - normalizer[:, None])
                on = certain + spread
                targets = tf.one_hot(labels, classes, on, spread)
                return (predicted - targets) * of_loss[:, None]
            with tf.control_dependencies([normalizer]):
                scale = of_loss[:, None]
                result = softmax * scale
            if label_smoothing:
                result -= scale * spread
            rows = tf.range(tf.shape(labels)[0], dtype=labels.dtype)
            return tf.raw_ops.ScatterNdNonAliasingAdd(
                input=result,
                indices=tf.stack([rows, labels], axis=-1),
                updates=-certain * of_loss,
            )

        likelihood = normalizer - of_label
        loss = likelihood + label_smoothing * (of_label - mean)
        is_right = tf.cast(labels, tf.int64) == predicted
        return (loss, likelihood, is_right), gradient

    return losses(logits)


def symmetric_divergence(logits, others):
    """KL(p || q) + KL(q || p): logits (..., V) of p and q -> (...) float32."""
    log_p = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    log_q = tf.nn.log_softmax(tf.cast(others, tf.float32))
    products = (tf.exp(log_p) - tf.exp(log_q)) * (log_p - log_q)
    return tf.reduce_sum(products, axis=-1)
