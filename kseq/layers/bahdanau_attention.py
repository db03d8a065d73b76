"""Additive attention of Bahdanau, Cho and Bengio."""

import keras

from kseq.check_integers import check_integers
from kseq.layers.projection import projection, projection_config
from kseq.ops import additive_energies, read_memory


@keras.saving.register_keras_serializable(package="kseq")
class BahdanauAttention(keras.layers.Layer):
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
        self.supports_masking = True
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
            "units": self.units,
            "window": self.window,
            "shared": self.shared,
            **projection_config(self),
        }
