"""Additive attention of Bahdanau, Cho and Bengio."""

import keras

from kseq.ops import (
    additive_energies,
    attend,
    fold_hypotheses,
    unfold_hypotheses,
)


@keras.saving.register_keras_serializable(package="kseq")
class BahdanauAttention(keras.layers.Layer):
    """Additive attention: a network with one hidden layer scores each pair.

        energy(q, k) = v . tanh(W q + U k)
        weights      = softmax of the energies over the real memory
        context      = sum of weights * memory

    Args:
        units: int, width of the hidden layer.
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
        ValueError: if `units` is not positive.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 16))
        >>> attention = BahdanauAttention(units=32)
        >>> attention(query, memory).shape
        TensorShape([2, 5, 16])

    Reference:
        Bahdanau et al. 2015, arXiv:1409.0473, sections 3.1 and A.1.2.
    """

    def __init__(self, units, **kwargs):
        if units < 1:
            raise ValueError(f"units must be positive. Received: units={units}")
        super().__init__(**kwargs)
        self.units = units
        self.query_projection = self._projection("query_projection")
        self.memory_projection = self._projection("memory_projection")

    def _projection(self, name):
        return keras.layers.Dense(
            self.units, use_bias=False, dtype=self.dtype_policy, name=name
        )

    def build(self, query_shape, memory_shape):
        self.query_projection.build(query_shape)
        self.memory_projection.build(memory_shape)
        self.scale = self.add_weight(
            shape=(self.units,), initializer="glorot_uniform", name="scale"
        )

    def project_memory(self, memory):
        """Keys and values: what depends on the memory alone."""
        return self.memory_projection(memory), memory

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights=False,
    ):
        if projected_memory is None:
            projected_memory = self.project_memory(memory)
        keys, values = projected_memory

        folded = fold_hypotheses(query, values)
        energies = additive_energies(
            self.query_projection(folded), keys, self.scale
        )
        context, weights = attend(energies, values, memory_mask)
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
        return {**super().get_config(), "units": self.units}
