"""The output of a preprocessor."""

from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import PAD


def _signature(preprocessor) -> dict[str, tf.TensorSpec]:
    """The inputs of a served signature, passed to a call by name."""
    name = preprocessor.input_name
    return {name: tf.TensorSpec((None,), tf.string, name=name)}


string_signature = property(_signature)  # of a preprocessor of strings


class Source(NamedTuple):
    """The source inputs of a model, and what a search must know about them.

    Args:
        inputs: dict, the model's inputs without `target_ids`.
        lengths: (B,) int32, which limit the answers: real tokens of each item,
            its END included, or a constant where answers do not depend on it.
        truncated: (B,) bool, whether something of the item was cut.
        blank: (B,) bool, whether the item has only END.
    """

    inputs: dict[str, tf.Tensor]
    lengths: tf.Tensor
    truncated: tf.Tensor
    blank: tf.Tensor


def source_of(ids: tf.RaggedTensor, truncated, blank_length: int) -> Source:
    """Pads ids of any rank; every axis but the first is at least 1.

    Args:
        ids: (B, ...) int32, ragged.
        truncated: (B,) bool.
        blank_length: number of tokens of a blank item.

    Example:
    >>> ids = tf.ragged.constant([[5, 6, 3], [3]])
    >>> source = source_of(ids, [False, False], blank_length=1)
    >>> source.inputs["source_ids"].numpy().tolist()
    [[5, 6, 3], [3, 0, 0]]
    >>> source.lengths.numpy(), source.blank.numpy()
    (array([3, 1], dtype=int32), array([False,  True]))
    """
    shape = tf.maximum(ids.bounding_shape(), [0] + [1] * (ids.shape.rank - 1))
    padded = ids.to_tensor(PAD, shape=shape)
    axes = list(range(1, ids.shape.rank))
    lengths = tf.math.count_nonzero(padded, axis=axes, dtype=tf.int32)
    return Source(
        inputs={"source_ids": padded},
        lengths=lengths,
        truncated=tf.convert_to_tensor(truncated),
        blank=lengths == blank_length,
    )
