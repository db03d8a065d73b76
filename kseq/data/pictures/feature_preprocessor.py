"""Features of the cells of a picture to the source inputs of a model."""

import tensorflow as tf

from kseq.data.files.source import Source
from kseq.user_error import check_integers, check_positive


class FeaturePreprocessor:
    """Precomputed features of a grid to the source inputs of a model.

        source = features / scale

    Every preprocessor has the same attributes and methods. It is used in
    training batches, in validation and in the served graph.

    Args:
        rows: int, rows of the grid.
        columns: int, columns of the grid.
        num_features: int, F, for each cell.
        scale: float, the typical size of a feature.

    Call arguments:
        features: (B, rows * columns, F) float, row by row.

    Returns:
        `Source`: `inputs` is `{"source", "source_mask"}`, (B, S, F) float32
        and (B, S) bool. Features that are not finite are blank: they have no
        real cell.

    Raises:
        ValueError: an argument is not positive.

    Example:
    >>> preprocessor = FeaturePreprocessor(rows=1, columns=2, num_features=3)
    >>> features = np.ones((2, 2, 3))
    >>> features[1] = np.nan
    >>> source = preprocessor(features)
    >>> source.lengths.numpy(), source.blank.numpy()
    (array([2, 0], dtype=int32), array([False,  True]))
    >>> preprocessor.tokens(source.inputs)[0].numpy().tolist()
    [b'1,1', b'1,2']
    """

    input_name = "features"  # of the served signature

    def __init__(
        self, rows: int, columns: int, num_features: int, scale: float = 1.0
    ):
        check_integers(rows=rows, columns=columns, num_features=num_features)
        check_positive(scale=scale)
        self.rows = rows
        self.columns = columns
        self.num_features = num_features
        self.scale = float(scale)

    def __call__(self, features) -> Source:
        features = tf.cast(features, tf.float32)
        is_whole = tf.reduce_all(tf.math.is_finite(features), axis=[1, 2])
        return self.source_of(features, is_whole)

    def source_of(self, features, is_whole) -> Source:
        """The source inputs of features (B, S, F) where `is_whole` (B,)."""
        real = is_whole[:, None] & tf.ones(tf.shape(features)[:2], tf.bool)
        # Not a product, because 0 * nan is nan.
        source = tf.where(real[:, :, None], features / self.scale, 0.0)
        return Source(
            inputs={"source": source, "source_mask": real},
            lengths=tf.math.count_nonzero(real, axis=1, dtype=tf.int32),
            truncated=tf.zeros_like(is_whole),
            blank=~is_whole,
        )

    @property
    def num_cells(self) -> int:
        """Number of cells of the grid."""
        return self.rows * self.columns

    @property
    def input_signature(self) -> dict[str, tf.TensorSpec]:
        """The inputs of a served signature, passed to a call by name."""
        shape = (None, self.num_cells, self.num_features)
        return {"features": tf.TensorSpec(shape, tf.float32, name="features")}

    def get_config(self) -> dict:
        """All arguments."""
        names = ("rows", "columns", "num_features", "scale")
        return {name: getattr(self, name) for name in names}

    def tokens(self, inputs) -> tf.Tensor:
        """Row and column of each cell, from 1; (B, S) string, "" if blank."""
        cells = [
            f"{row},{column}"
            for row in range(1, self.rows + 1)
            for column in range(1, self.columns + 1)
        ]
        return tf.where(inputs["source_mask"], tf.constant([cells]), "")
