"""Location-aware additive attention."""

import functools

import keras
from keras import ops

from kseq.layers.attention_scores import BahdanauAttention
from kseq.layers.dense import Dense
from kseq.ops import (
    additive_energies,
    fold_hypotheses,
    project,
    read_memory,
    with_padded_batch,
)
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class LocationAwareAttention(BahdanauAttention):
    """Additive attention that also scores positions by the previous weights.

        f            = convolution of the weights of the previous step
        energy(q, k) = v . tanh(W q + U k + V f_k)
        weights      = softmax of the energies over the real memory
        context      = sum of weights * memory

    So it can advance through a memory whose parts are similar. In
    `AttentionDecoder` it needs order="bahdanau" or input feeding.

    Args:
        units: int, width of the hidden layer.
        filters: int, of the convolution.
        kernel_size: int, positions that each filter reads.
        window: int, attend to the last `window` real positions of the memory
            only; None for all.
        use_bias: bool, whether W and U have a bias.
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
        last_weights: (B, T, S) float, or (B * K, T, S), the weights of the
            step before each query. Zeros if None.

    Returns:
        context, (B, T, M), or `(context, weights)` with weights (B, T, S).
        Both are zero if all positions are masked.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> query, memory = np.ones((2, 1, 8)), np.ones((2, 7, 16))
        >>> attention = LocationAwareAttention(units=32, kernel_size=3)
        >>> _, first = attention(query, memory, return_weights=True)
        >>> attention(query, memory, last_weights=first).shape
        TensorShape([2, 1, 16])

    Reference:
        Chorowski et al. 2015, arXiv:1506.07503, section 2.1, equations 8
        and 9.
    """

    reads_last_weights = True

    def __init__(
        self,
        units: int,
        filters: int = 10,
        kernel_size: int = 31,
        window: int | None = None,
        use_bias: bool = False,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        kernel_constraint: keras.constraints.Constraint | None = None,
        **kwargs,
    ):
        check_integers(filters=filters, kernel_size=kernel_size)
        super().__init__(
            units,
            window=window,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            kernel_constraint=kernel_constraint,
            **kwargs,
        )
        self.filters = filters
        self.kernel_size = kernel_size
        self.convolution = keras.layers.Conv1D(
            filters,
            kernel_size,
            padding="same",
            data_format="channels_last",
            use_bias=False,
            dtype=self.dtype_policy,
            name="convolution",
        )
        self.location_projection = Dense(
            units,
            use_bias=False,
            dtype=self.dtype_policy,
            name="location_projection",
        )

    def build(self, query_shape, memory_shape):
        super().build(query_shape, memory_shape)
        self.convolution.build((None, None, 1))
        self.location_projection.build((None, None, self.filters))

    def energies(self, query, keys, last_weights):
        """Scores before the softmax.

        Args:
            query: (B, T, D) float.
            keys: (B, S, U) float.
            last_weights: (B, T, S) float.

        Returns:
            (B, T, S).
        """
        batch, steps, time = ops.shape(last_weights)
        x = ops.reshape(last_weights, (batch * steps, time, 1))
        x = with_padded_batch(self.convolution, x)
        located = ops.reshape(
            project(x, self.location_projection.kernel),
            (batch, steps, time, self.units),
        )
        hidden = self.query_projection(query)
        return additive_energies(hidden, keys, self.scale, located)

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights: bool = False,
        last_weights=None,
    ):
        keys, values = self.projected(
            query, memory, projected_memory, memory_mask
        )
        if last_weights is None:
            shape = (*ops.shape(query)[:2], ops.shape(values)[1])
            last_weights = ops.zeros(shape, dtype=values.dtype)
        last_weights = fold_hypotheses(last_weights, values)
        return read_memory(
            functools.partial(self.energies, last_weights=last_weights),
            query,
            (keys, values),
            memory_mask=memory_mask,
            window=self.window,
            return_weights=return_weights,
        )

    def get_config(self) -> dict:
        config = super().get_config()
        del config["shared"]
        return {
            **config,
            "filters": self.filters,
            "kernel_size": self.kernel_size,
        }
