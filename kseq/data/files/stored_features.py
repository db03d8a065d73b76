"""Features that are looked up by their number."""

import functools
import math

import numpy as np
import tensorflow as tf

from kseq.data.files.ragged_array import RaggedArray, as_tensor, read


class StoredFeatures:
    """Features that are looked up by their number.

    In training batches it replaces a preprocessor: numbers are shuffled and
    saved in checkpoints, and features are looked up at the end.

    Args:
        names: list of str, of the pictures or recordings.
        features: (N, S, F), float or int; (sum of lengths, F) with `lengths`;
            or a `RaggedArray` of N rows (S, F). If they are mapped from a
            file, only what is read takes memory.
        preprocessor: `FeaturePreprocessor` of cells, or `FramePreprocessor`.
        factors: (F,) float, which multiply the features, or None.
        lengths: (N,) int, frames of each; None if all have the same number.

    Example:
    >>> from kseq.data import FeaturePreprocessor
    >>> features = np.arange(6, dtype="int8").reshape(3, 1, 2)
    >>> grid = FeaturePreprocessor(rows=1, columns=1, num_features=2)
    >>> stored = StoredFeatures(["a", "b", "c"], features, grid)
    >>> stored[2]
    array([[4., 5.]], dtype=float32)
    >>> stored.tokenize(["2"]).to_list()
    [[2]]
    """

    def __init__(
        self,
        names: list[str],
        features: np.ndarray | RaggedArray,
        preprocessor,
        factors: np.ndarray | None = None,
        lengths: np.ndarray | None = None,
    ):
        self.names = names
        if lengths is not None:
            offsets = np.cumsum([0, *lengths], dtype=np.int64)
            features = RaggedArray(features, offsets)
        self.features = features
        self.preprocessor = preprocessor
        self.factors = None if factors is None else np.float32(factors)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, number) -> np.ndarray:
        """(S, F) float32."""
        features = self.features[number].astype("float32")
        return features if self.factors is None else features * self.factors

    def tokenize(self, numbers) -> tf.RaggedTensor:
        """(B,) string -> (B, 1) int32, ragged."""
        numbers = tf.strings.to_number(numbers, tf.int32)
        return tf.RaggedTensor.from_tensor(numbers[:, None])

    def lengths(self, numbers) -> tf.Tensor:
        """The cells or frames of each, (B,) int64."""
        if isinstance(self.features, RaggedArray):
            return self.features.lengths(numbers.values)
        cells = tf.constant(self.features.shape[1], tf.int64)
        return tf.fill([numbers.nrows()], cells)

    def all_lengths(self) -> np.ndarray:
        """The frames of each, (N,) int64; only if they differ."""
        return np.diff(self.features.offsets)

    def look_up(self, inputs, labels, weight, whole_width=False):
        """A batch with features in place of the numbers in `source_ids`.

        Args:
            inputs: those of pairs, whose sources begin with their number.
            labels: returned unchanged.
            weight: returned unchanged.
            whole_width: whether sources get the width of `source_ids`;
                otherwise that of the longest.
        """
        ids = inputs["source_ids"]
        width = tf.shape(ids)[1] if whole_width else None
        source = self.inputs(ids[:, 0], width)
        return {**source, "target_ids": inputs["target_ids"]}, labels, weight

    def inputs(self, numbers, width=None) -> dict[str, tf.Tensor]:
        """The source inputs of a model.

        Args:
            numbers: (B,) int.
            width: of sources that differ in length; that of the longest if
                None.
        """
        features = tf.cast(self._gather(numbers), tf.float32)
        if self.factors is not None:
            features *= self.factors
        if isinstance(features, tf.RaggedTensor):
            shape = (None, None, self.features.values.shape[-1])
            padded = shape if width is None else (-1, width, shape[-1])
            features = features.to_tensor(math.nan, shape=padded)
            features = tf.ensure_shape(features, shape)
        return self.preprocessor(features).inputs

    def _gather(self, numbers):
        if isinstance(self.features, RaggedArray):
            return self.features.gather(numbers)
        return read(self._table, numbers)

    @functools.cached_property
    def _table(self):
        return as_tensor(self.features)
