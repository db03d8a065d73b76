"""Location-based attention, which ignores the content of the memory."""

import keras
from keras import ops

from kseq.check_integers import check_integers
from kseq.ops import project, read_memory


@keras.saving.register_keras_serializable(package="kseq")
class LocationAttention(keras.layers.Layer):
    """Attention by the query alone: one energy for each memory position.

        weights = softmax(W q) over the real positions
        context = sum of weights * memory

    Args:
        max_length: int, number of memory positions that have an energy. Later
            positions get no weight.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        query: (B, T, D) float. With `projected_memory`, (B * K, T, D): K
            hypotheses of each item, which read the same memory.
        memory: (B, S, M) float, or None if `projected_memory` is given.
        memory_mask: (B, S) bool, True at real positions. By default the
            Keras mask of `memory`, if it has one.
        projected_memory: the output of `project_memory(memory)`.
        return_weights: bool, whether to return the weights too.

    Returns:
        context, (B, T, M), or `(context, weights)` with weights (B, T, S).
        Both are zero if all positions are masked.

    Raises:
        ValueError: if `max_length` is not a positive integer.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 16))
        >>> attention = LocationAttention(max_length=50)
        >>> attention(query, memory).shape
        TensorShape([2, 5, 16])

    Reference:
        Luong et al. 2015, arXiv:1508.04025, equation 9.
    """

    def __init__(self, max_length: int, **kwargs):
        check_integers(max_length=max_length)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.max_length = max_length
        self.query_projection = keras.layers.Dense(
            max_length,
            use_bias=False,
            dtype=self.dtype_policy,
            name="query_projection",
        )

    def build(self, query_shape, memory_shape):
        self.query_projection.build(query_shape)

    def project_memory(self, memory):
        """Keys and values: the memory, since nothing is projected."""
        return memory, memory

    def energies(self, query, keys):
        """Scores before the softmax: (B, T, D), (B, S, M) -> (B, T, S)."""
        positions = ops.arange(ops.shape(keys)[1])
        return ops.take(
            project(query, self.query_projection.kernel),
            ops.minimum(positions, self.max_length - 1),
            axis=-1,
        )

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights: bool = False,
    ):
        keys, values = projected_memory or self.project_memory(memory)
        positions = ops.arange(ops.shape(values)[1])
        reached = ops.expand_dims(positions < self.max_length, 0)
        if memory_mask is not None:
            reached = ops.logical_and(reached, memory_mask)
        return read_memory(
            self.energies,
            query,
            (keys, values),
            memory_mask=reached,
            return_weights=return_weights,
        )

    def compute_output_shape(self, query_shape, memory_shape):
        return (*query_shape[:-1], memory_shape[-1])

    # The arguments decide how many outputs there are: trace `call`.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict:
        return {**super().get_config(), "max_length": self.max_length}
