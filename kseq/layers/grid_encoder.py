"""The cells of a picture as a memory to attend to."""

import keras
from keras import ops

from kseq.layers.check_mask import check_mask
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of
from kseq.layers.layer_normalization import LayerNormalization
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class GridEncoder(keras.layers.Layer):
    """The cells of a picture as a memory to attend to.

        memory_i = LayerNorm(W relu(V source_i + b) + c) + positions_i

    A `source_layer` of `LSTMSeq2Seq` and `Transformer`.

    Args:
        units: int, D, of the memory and of the hidden layer.
        num_cells: int, number of cells that have a learned position.
        dropout: float, on the features, the hidden layer and the memory.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        source: (B, S, F) float, a vector of features for each cell.
        source_mask: (B, S) bool, True at real cells.

    Returns:
        memory (B, S, D), its mask, which is `source_mask`, and [], because it
        has no states.

    Raises:
        ValueError: if an argument is out of range, or S is known and larger
            than `num_cells`.

    Example:
        >>> source, mask = np.ones((2, 9, 16)), np.ones((2, 9), bool)
        >>> memory, _, states = GridEncoder(8, num_cells=9)(source, mask)
        >>> memory.shape, states
        (TensorShape([2, 9, 8]), [])

    Reference:
        Xu et al. 2015, arXiv:1502.03044, section 3.1.1, whose decoder reads
        the features as they are; learned positions from Dosovitskiy et al.
        2021, arXiv:2010.11929.
    """

    def __init__(
        self, units: int, num_cells: int, dropout: float = 0.0, **kwargs
    ):
        check_integers(units=units, num_cells=num_cells)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.num_cells = num_cells
        self.dropout = dropout
        policy = self.dtype_policy
        self.hidden = keras.layers.Dense(
            units, "relu", dtype=policy, name="hidden"
        )
        self.projection = keras.layers.Dense(
            units, dtype=policy, name="projection"
        )
        self.norm = LayerNormalization(dtype=policy, name="norm")
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")

    def build(self, source_shape, source_mask_shape=None):
        self.hidden.build(source_shape)
        inner = (*source_shape[:-1], self.units)
        self.projection.build(inner)
        self.norm.build(inner)
        self.positions = self.add_weight(
            name="positions",
            shape=(self.num_cells, self.units),
            initializer=keras.initializers.RandomNormal(stddev=0.5),
        )

    def call(self, source, source_mask):
        check_mask("source_mask", source_mask, *source.shape[:2])
        cells = source.shape[1] or 0
        if cells > self.num_cells:
            raise ValueError(
                f"There are positions for num_cells={self.num_cells}. "
                f"Received: a source of {cells} cells"
            )
        x = self.hidden(self.dropout_layer(source))
        x = self.norm(self.projection(self.dropout_layer(x)))
        places = ops.arange(ops.shape(source)[1], dtype="int32")
        places = ops.minimum(places, self.num_cells - 1)
        memory = x + ops.take(self.positions, places, axis=0)
        return self.dropout_layer(memory), source_mask, []

    def compute_mask(self, source, previous_mask):
        return None  # the mask is an output

    def compute_output_shape(self, source_shape, source_mask_shape=None):
        memory = (*source_shape[:-1], self.units)
        return memory, source_shape[:-1], []

    # The outputs have two dtypes: trace `call`.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict:
        return config_of(self, GridEncoder)
