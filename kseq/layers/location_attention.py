"""Attention to positions, whatever stands there."""

import keras
from keras import ops

from kseq.ops import (
    attend,
    fold_hypotheses,
    unfold_hypotheses,
)


@keras.saving.register_keras_serializable(package="kseq")
class LocationAttention(keras.layers.Layer):
    """Attention by the query alone: one energy for each memory position.

        weights = softmax(W q) over the real positions
        context = sum of weights * memory

    Args:
        max_length: int, memory positions that have an energy. Later ones get
            no weight.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        query: (B, T, D) float. With `projected_memory`, (B * K, T, D): K
            hypotheses of each item, all reading the item's one memory.
        memory: (B, S, M) float, or None where `projected_memory` is given.
        memory_mask: (B, S) bool, True at real positions.
        projected_memory: what `project_memory(memory)` returned.
        return_weights: bool, whether to return the weights too.

    Returns:
        context, (B, T, M), or `(context, weights)` with weights (B, T, S).
        With nothing to attend to, both are zero.

    Raises:
        ValueError: if `max_length` is not positive.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 16))
        >>> attention = LocationAttention(max_length=50)
        >>> attention(query, memory).shape
        TensorShape([2, 5, 16])

    Reference:
        Luong et al. 2015, arXiv:1508.04025, equation 9.
    """

    def __init__(self, max_length, **kwargs):
        if max_length < 1:
            raise ValueError(
                "max_length must be positive. "
                f"Received: max_length={max_length}"
            )
        super().__init__(**kwargs)
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
        """The memory: nothing to compute depends on it alone."""
        return memory

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights=False,
    ):
        values = memory if projected_memory is None else projected_memory
        positions = ops.arange(ops.shape(values)[1])
        reached = ops.expand_dims(positions < self.max_length, 0)
        if memory_mask is not None:
            reached = ops.logical_and(reached, memory_mask)

        folded = fold_hypotheses(query, values)
        energies = ops.take(
            self.query_projection(folded),
            ops.minimum(positions, self.max_length - 1),
            axis=-1,
        )  # (B, K * T, S)
        context, weights = attend(energies, values, reached)
        context = unfold_hypotheses(context, query)
        if not return_weights:
            return context
        return context, unfold_hypotheses(weights, query)

    def compute_output_shape(self, query_shape, memory_shape):
        return (*query_shape[:-1], memory_shape[-1])

    def compute_output_spec(self, *args, **kwargs):
        # How many outputs there are depends on the arguments: trace `call`.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {**super().get_config(), "max_length": self.max_length}
