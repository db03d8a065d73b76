"""Multiplicative attention of Luong, Pham and Manning."""

import keras
from keras import ops

from kseq.ops import (
    additive_energies,
    attend,
    dot_energies,
    fold_hypotheses,
    last_mask,
    scaled_dot_energies,
    unfold_hypotheses,
)

_SCORES = ("dot", "scaled_dot", "general", "concat")


@keras.saving.register_keras_serializable(package="kseq")
class LuongAttention(keras.layers.Layer):
    """Attention by a product of query and memory, global or over a window.

        dot          energy(q, k) = q . k
        scaled_dot   energy(q, k) = q . k / sqrt(D)
        general      energy(q, k) = q . (W k)
        concat       energy(q, k) = v . tanh(W [q; k])

        weights = softmax of the energies over the real memory
        context = sum of weights * memory

    Args:
        score: "dot", "scaled_dot", "general" or "concat".
        units: int, width of the hidden layer of "concat", and only there.
        window: int, attend to the last `window` real positions of the memory
            only; None for all. The paper's local attention moves its window
            over the memory instead.
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
        ValueError: if `score` is unknown, if `units` or `window` does not fit
            it, or if M is not D in a dot product.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 8))
        >>> context, weights = LuongAttention(score="dot")(
        ...     query, memory, return_weights=True
        ... )
        >>> context.shape, weights.shape
        (TensorShape([2, 5, 8]), TensorShape([2, 5, 7]))

    Reference:
        Luong et al. 2015, arXiv:1508.04025, section 3.1; the scale is of
        Vaswani et al. 2017, arXiv:1706.03762, equation 1.
    """

    def __init__(self, score="dot", units=None, window=None, **kwargs):
        if score not in _SCORES:
            raise ValueError(
                f"score must be one of {_SCORES}. Received: score={score!r}"
            )
        if (score == "concat") != (units is not None):
            raise ValueError(
                'units must be given for score="concat" and only there. '
                f"Received: score={score!r}, units={units}"
            )
        for name, value in (("units", units), ("window", window)):
            if value is not None and value < 1:
                raise ValueError(
                    f"{name} must be positive or None. Received: {name}={value}"
                )
        super().__init__(**kwargs)
        self.score = score
        self.units = units
        self.window = window

    def build(self, query_shape, memory_shape):
        if self.score == "general":
            self.memory_projection = self._projection(
                query_shape[-1], memory_shape, name="memory_projection"
            )
        elif self.score == "concat":
            self.query_projection = self._projection(
                self.units, query_shape, name="query_projection"
            )
            self.memory_projection = self._projection(
                self.units, memory_shape, name="memory_projection"
            )
            self.scale = self.add_weight(
                shape=(self.units,), initializer="glorot_uniform", name="scale"
            )
        elif query_shape[-1] != memory_shape[-1]:
            raise ValueError(
                f"score={self.score!r} needs query and memory of one size. "
                f"Received: query {query_shape}, memory {memory_shape}"
            )

    def _projection(self, units, shape, name):
        dense = keras.layers.Dense(
            units, use_bias=False, dtype=self.dtype_policy, name=name
        )
        dense.build(shape)
        return dense

    def project_memory(self, memory):
        """Keys and values: what depends on the memory alone."""
        if self.score in ("general", "concat"):
            return self.memory_projection(memory), memory
        return memory, memory

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
        if self.window is not None:
            if memory_mask is None:
                memory_mask = ops.ones(ops.shape(values)[:2], dtype="bool")
            memory_mask = last_mask(memory_mask, self.window)

        folded = fold_hypotheses(query, values)
        energies = self._energies(folded, keys)
        context, weights = attend(energies, values, memory_mask)
        context = unfold_hypotheses(context, query)
        if not return_weights:
            return context
        return context, unfold_hypotheses(weights, query)

    def _energies(self, query, keys):
        if self.score == "concat":
            hidden = self.query_projection(query)
            return additive_energies(hidden, keys, self.scale)
        if self.score == "scaled_dot":
            return scaled_dot_energies(query, keys)
        return dot_energies(query, keys)

    def compute_output_shape(self, query_shape, memory_shape):
        return (*query_shape[:-1], memory_shape[-1])

    def compute_output_spec(self, *args, **kwargs):
        # How many outputs there are depends on the arguments: trace `call`.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "score": self.score,
            "units": self.units,
            "window": self.window,
        }
