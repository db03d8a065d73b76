"""Attention scores: additive, multiplicative and location-based."""

import keras
from keras import ops

from kseq.layers.check_mask import check_mask, may_be_equal
from kseq.layers.layer_config import config_of
from kseq.ops import (
    additive_energies,
    dot_energies,
    project,
    read_memory,
    scaled_dot_energies,
)
from kseq.user_error import check_choice, check_integers

_OBJECTS = "kernel_initializer", "kernel_constraint"  # with a config


class _Dense(keras.layers.Dense):
    """`keras.layers.Dense` as one product of two matrices, also in a loop."""

    def call(self, inputs, training=None):
        outputs = project(inputs, self.kernel)
        return outputs + self.bias if self.use_bias else outputs


def projection(attention, units, name):
    """A Dense layer with the initializer and constraint of an attention."""
    initializer = attention.kernel_initializer
    if isinstance(initializer, keras.Initializer):
        initializer = initializer.clone()  # one object repeats its values
    return _Dense(
        units,
        use_bias=attention.use_bias,
        kernel_initializer=initializer,
        kernel_constraint=attention.kernel_constraint,
        dtype=attention.dtype_policy,
        name=name,
    )


def check_memory(memory, query):
    """Raises ValueError unless a memory has three axes, and the query's batch.

    One of two axes, such as the last state of a recurrent layer, would have the
    rows of the batch attend to each other; one of fewer items would be that of
    several hypotheses, which read a projected memory.
    """
    shape = getattr(memory, "shape", None)
    if shape is None or len(shape) != 3:
        received = None if shape is None else f"shape {tuple(shape)}"
        raise ValueError(f"memory must be (B, S, M). Received: {received}")
    if not may_be_equal(query.shape[0], shape[0]):
        raise ValueError(
            "query (B, T, D) and memory (B, S, M) must have the same batch. "
            f"Received: {tuple(query.shape)} and {tuple(shape)}"
        )


class _Attention(keras.layers.Layer):
    """Attention whose `energies` of queries and keys read the memory."""

    window: int | None = None
    reads_turns = False  # whether the mask is that of turns, (B, N, W)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def project_memory(self, memory):
        """Keys and values, which do not depend on the query."""
        return memory, memory

    def projected(self, query, memory, projected_memory, memory_mask):
        """The output of `project_memory`, if it is not given."""
        if not projected_memory:
            check_memory(memory, query)
            projected_memory = self.project_memory(memory)
        if memory_mask is not None and not self.reads_turns:
            shape = projected_memory[-1].shape[:2]
            check_mask("memory_mask", memory_mask, *shape)
        return projected_memory

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
            self.projected(query, memory, projected_memory, memory_mask),
            memory_mask=memory_mask,
            window=self.window,
            return_weights=return_weights,
        )

    def compute_output_shape(self, query_shape, memory_shape):
        return (*query_shape[:-1], memory_shape[-1])

    # The arguments decide how many outputs there are: trace `call`.
    compute_output_spec = keras.Operation.compute_output_spec


@keras.saving.register_keras_serializable(package="kseq")
class BahdanauAttention(_Attention):
    """Additive attention: a network with one hidden layer scores each pair.

        energy(q, k) = v . tanh(W q + U k)
        weights      = softmax of the energies over the real memory
        context      = sum of weights * memory

    For a different score, override `energies`, see `LuongAttention`.

    Args:
        units: int, width of the hidden layer.
        window: int, attend to the last `window` real positions of the memory
            only; None for all.
        shared: bool, one projection for query and memory, W = U. Both must
            have the same number of features.
        use_bias: bool, whether each projection has a bias.
        kernel_initializer: of W and U.
        kernel_constraint: of W and U.
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
        ValueError: if an argument is out of range, or if M is not D in a
            shared projection.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 16))
        >>> attention = BahdanauAttention(units=32)
        >>> attention(query, memory).shape
        TensorShape([2, 5, 16])

    Reference:
        Bahdanau et al. 2015, arXiv:1409.0473, sections 3.1 and A.1.2.
    """

    def __init__(
        self,
        units: int,
        window: int | None = None,
        shared: bool = False,
        use_bias: bool = False,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        kernel_constraint: keras.constraints.Constraint | None = None,
        **kwargs,
    ):
        check_integers(units=units)
        check_integers(window=window, optional=True)
        super().__init__(**kwargs)
        self.units = units
        self.window = window
        self.shared = shared
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.kernel_constraint = kernel_constraint
        self.query_projection = projection(self, units, "query_projection")
        self.memory_projection = (
            self.query_projection
            if shared
            else projection(self, units, "memory_projection")
        )

    def build(self, query_shape, memory_shape):
        if self.shared and query_shape[-1] != memory_shape[-1]:
            raise ValueError(
                "A shared projection needs query and memory with the same "
                f"number of features. Received: query {query_shape}, memory "
                f"{memory_shape}"
            )
        self.query_projection.build(query_shape)
        if not self.shared:
            self.memory_projection.build(memory_shape)
        self.scale = self.add_weight(
            shape=(self.units,), initializer="glorot_uniform", name="scale"
        )

    def project_memory(self, memory):
        """Keys and values, which do not depend on the query."""
        return self.memory_projection(memory), memory

    def energies(self, query, keys):
        """Scores before the softmax: (B, T, D), (B, S, U) -> (B, T, S)."""
        hidden = self.query_projection(query)
        return additive_energies(hidden, keys, self.scale)

    def get_config(self) -> dict:
        return config_of(self, BahdanauAttention, *_OBJECTS)


_SCORES = ("dot", "scaled_dot", "general", "concat")


@keras.saving.register_keras_serializable(package="kseq")
class LuongAttention(_Attention):
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
            only; None for all. For the window of the paper, which moves over
            the memory, see `LocalAttention`.
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
        check_choice("score", score, _SCORES)
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
        self.score = score
        self.units = units
        self.window = window
        self.symmetric = symmetric
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.kernel_constraint = kernel_constraint

    def build(self, query_shape, memory_shape=None):
        is_product = self.score in ("dot", "scaled_dot")
        if memory_shape is None:  # a call has projected_memory alone
            if not is_product:
                raise ValueError(
                    f"score={self.score!r} has weights for the memory: call "
                    "the layer with memory before projected_memory, or build "
                    "it."
                )
            memory_shape = query_shape
        must_be_equal = self.symmetric or is_product
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

    def get_config(self) -> dict:
        return config_of(self, LuongAttention, *_OBJECTS)


@keras.saving.register_keras_serializable(package="kseq")
class LocationAttention(_Attention):
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
        self.max_length = max_length
        self.query_projection = _Dense(
            max_length,
            use_bias=False,
            dtype=self.dtype_policy,
            name="query_projection",
        )

    def build(self, query_shape, memory_shape):
        self.query_projection.build(query_shape)

    def energies(self, query, keys):
        """Scores before the softmax: (B, T, D), (B, S, M) -> (B, T, S)."""
        positions = ops.arange(ops.shape(keys)[1], dtype="int32")
        return ops.take(
            self.query_projection(query),
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
        _, values = projected = self.projected(
            query, memory, projected_memory, memory_mask
        )
        positions = ops.arange(ops.shape(values)[1], dtype="int32")
        reached = ops.expand_dims(positions < self.max_length, 0)
        if memory_mask is not None:
            reached = ops.logical_and(reached, memory_mask)
        return super().call(
            query,
            memory_mask=reached,
            projected_memory=projected,
            return_weights=return_weights,
        )

    def get_config(self) -> dict:
        return {**super().get_config(), "max_length": self.max_length}
