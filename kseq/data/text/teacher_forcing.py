"""Teacher forcing: the inputs and labels of a decoder."""

import tensorflow as tf

from kseq.control_tokens import END, PAD, START


def teacher_forcing(labels) -> tf.Tensor:
    """Labels to decoder inputs: before each label, the one that precedes it.

        target_ids = START, labels[:-1]

    Nothing follows END: an input at its position or at padding is PAD.

    Args:
        labels: (B, T) int, each row with END, then PAD.

    Returns:
        (B, T), of the same dtype.

    Example:
    >>> teacher_forcing(tf.constant([[7, 8, 9, 3], [7, 3, 0, 0]])).numpy()
    array([[2, 7, 8, 9],
           [2, 7, 0, 0]], dtype=int32)

    Reference:
        Williams and Zipser 1989, A Learning Algorithm for Continually
        Running Fully Recurrent Neural Networks.
    """
    labels = tf.convert_to_tensor(labels)
    starts = tf.fill([tf.shape(labels)[0], 1], tf.cast(START, labels.dtype))
    target_ids = tf.concat([starts, labels[:, :-1]], axis=1)
    return tf.where(target_ids == END, tf.cast(PAD, labels.dtype), target_ids)
