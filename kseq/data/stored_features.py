"""Features that are looked up by their number."""

import numpy as np
import tensorflow as tf

from kseq.data.feature_preprocessor import FeaturePreprocessor


class StoredFeatures:
    """Features that are looked up by their number.

    In training batches it takes the place of a preprocessor: what is shuffled
    and kept in checkpoints are numbers, and features are looked up at the end.

    Args:
        names: list of str, of the pictures.
        features: (N, S, F), float or int.
        preprocessor: `FeaturePreprocessor` of their cells.
        factors: (F,) float, by which features are multiplied, or None.

    Example:
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
        features: np.ndarray,
        preprocessor: FeaturePreprocessor,
        factors: np.ndarray | None = None,
    ):
        self.names = names
        self.features = features
        self.preprocessor = preprocessor
        self.factors = None if factors is None else np.float32(factors)
        self._table = None  # made where it is used, in the strategy's scope

    def __len__(self):
        return len(self.names)

    def __getitem__(self, number) -> np.ndarray:
        """(S, F) float32."""
        features = self.features[number].astype("float32")
        return features if self.factors is None else features * self.factors

    def tokenize(self, numbers) -> tf.RaggedTensor:
        """(B,) string -> (B, 1) int32, ragged."""
        numbers = tf.strings.to_number(numbers, tf.int32)
        return tf.RaggedTensor.from_tensor(numbers[:, None])

    def lengths(self, numbers) -> tf.Tensor:
        """The cells of each picture, (B,) int64."""
        cells = tf.constant(self.preprocessor.num_cells, tf.int64)
        return tf.fill([numbers.nrows()], cells)

    def look_up(self, inputs, labels, weight):
        """A batch with features in place of the numbers in `source_ids`."""
        if self._table is None:
            with tf.init_scope():
                self._table = tf.constant(self.features)
        numbers = inputs["source_ids"][:, 0]
        features = tf.cast(tf.gather(self._table, numbers), tf.float32)
        if self.factors is not None:
            features *= self.factors
        source = self.preprocessor(features).inputs
        inputs = {**source, "target_ids": inputs["target_ids"]}
        return inputs, labels, weight
