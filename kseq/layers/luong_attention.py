"""Multiplicative attention of Luong, Pham and Manning."""

import keras

from kseq.check_integers import check_integers
from kseq.layers.projection import projection, projection_config
from kseq.ops import (
    additive_energies,
    dot_energies,
    read_memory,
    scaled_dot_energies,
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

    For a different score, override `energies`, as in the second example. The
    subclass works in `AttentionDecoder`, in beam search and in saved models.

    Args:
        score: "dot", "scaled_dot", "general" or "concat".
        units: int, width of the hidden layer of "concat", or rank of a
            symmetric W; None for the other scores.
        window: int, attend to the last `window` real positions of the memory
            only; None for all. The paper's local attention moves its window
            over the memory instead.
        symmetric: bool, "general" with W = U^T diag(d) U, where U has `units`
            rows. Query and memory must have the same number of features.
        use_bias: bool, whether each projection has a bias.
        kernel_initializer: of W or U.
        kernel_constraint: of W or U.
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
        ValueError: if `score` is unknown, if an argument does not fit it, or
            if M is not D in a dot product.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 8))
        >>> context, weights = LuongAttention(score="dot")(
        ...     query, memory, return_weights=True
        ... )
        >>> context.shape, weights.shape
        (TensorShape([2, 5, 8]), TensorShape([2, 5, 7]))

        >>> @keras.saving.register_keras_serializable(package="example")
        ... class CosineAttention(LuongAttention):
        ...     def energies(self, query, keys):
        ...         query, keys = map(keras.ops.normalize, (query, keys))
        ...         return kseq.ops.dot_energies(query, keys)
        >>> cosine = CosineAttention()
        >>> decoder = kseq.layers.AttentionDecoder(units=8, attention=cosine)
        >>> decoder(query, memory).shape
        TensorShape([2, 5, 8])

    Reference:
        Luong et al. 2015, arXiv:1508.04025, section 3.1; the scale: Vaswani
        et al. 2017, arXiv:1706.03762, equation 1; the symmetric form: Huang
        et al. 2018, arXiv:1711.07341.
    """

    def __init__(
        self,
        score: str = "dot",
        units: int | None = None,
        window: int | None = None,
        symmetric: bool = False,
        use_bias: bool = False,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        kernel_constraint: keras.constraints.Constraint | None = None,
        **kwargs,
    ):
        if score not in _SCORES:
            raise ValueError(
                f"score must be one of {_SCORES}. Received: score={score!r}"
            )
        if symmetric and score != "general":
            raise ValueError(
                'Only score="general" can be symmetric. '
                f"Received: score={score!r}, symmetric={symmetric}"
            )
        if (score == "concat" or symmetric) != (units is not None):
            raise ValueError(
                'units must be given for score="concat" and for a symmetric '
                'score="general", and only there. '
                f"Received: score={score!r}, units={units}"
            )
        check_integers(units=units, window=window, optional=True)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score = score
        self.units = units
        self.window = window
        self.symmetric = symmetric
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.kernel_constraint = kernel_constraint

    def build(self, query_shape, memory_shape):
        must_be_equal = self.symmetric or self.score in ("dot", "scaled_dot")
        if must_be_equal and query_shape[-1] != memory_shape[-1]:
            raise ValueError(
                f"score={self.score!r}, symmetric={self.symmetric} needs query "
                "and memory with the same number of features. Received: query "
                f"{query_shape}, memory {memory_shape}"
            )
        if self.score == "concat":
            self.query_projection = projection(
                self, self.units, "query_projection"
            )
            self.query_projection.build(query_shape)
        if self.score in ("general", "concat"):
            self.memory_projection = projection(
                self, self.units or query_shape[-1], "memory_projection"
            )
            self.memory_projection.build(memory_shape)
        if self.score == "concat" or self.symmetric:
            self.scale = self.add_weight(
                shape=(self.units,),
                initializer="ones" if self.symmetric else "glorot_uniform",
                name="scale",
            )

    def project_memory(self, memory):
        """Keys and values, which do not depend on the query."""
        if self.score in ("general", "concat"):
            return self.memory_projection(memory), memory
        return memory, memory

    def energies(self, query, keys):
        """Scores before the softmax: (B, T, D), keys (B, S, .) -> (B, T, S)."""
        if self.score == "concat":
            hidden = self.query_projection(query)
            return additive_energies(hidden, keys, self.scale)
        if self.score == "scaled_dot":
            return scaled_dot_energies(query, keys)
        if self.symmetric:
            query = self.memory_projection(query) * self.scale
        return dot_energies(query, keys)

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights: bool = False,
    ):
        return read_memory(
            self.energies,
            query,
            projected_memory or self.project_memory(memory),
            memory_mask=memory_mask,
            window=self.window,
            return_weights=return_weights,
        )

    def compute_output_shape(self, query_shape, memory_shape):
        return (*query_shape[:-1], memory_shape[-1])

    # The arguments decide how many outputs there are: trace `call`.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "score": self.score,
            "units": self.units,
            "window": self.window,
            "symmetric": self.symmetric,
            **projection_config(self),
        }
