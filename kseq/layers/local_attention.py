"""Attention over a window that moves over the memory."""

import keras
from keras import ops

from kseq.layers.attention_scores import LuongAttention, projection
from kseq.ops import (
    fold_hypotheses,
    masked_softmax,
    unfold_hypotheses,
    weighted_sum,
)
from kseq.ops.masks import PLACES, range_of
from kseq.user_error import check_choice, check_integers

_ALIGNMENTS = ("monotonic", "predictive")


@keras.saving.register_keras_serializable(package="kseq")
class LocalAttention(LuongAttention):
    """Luong's local attention: over a window of the memory around a center.

        monotonic    p_t = t
        predictive   p_t = S sigmoid(v . tanh(W q_t))

        weights_t(s) = softmax of the energies where |s - p_t| <= D
        predictive:    times exp(-(s - p_t)^2 / (2 (D / 2)^2))
        context_t    = sum of weights_t * memory

    where S is the number of real positions of the memory, s counts them from
    0, and D is `window`. As in the paper, predictive weights do not sum to 1.
    A monotonic window that has passed the end of the memory gives zeros.

    Args:
        score: see `LuongAttention`.
        units: see `LuongAttention`.
        window: int, D, positions on each side of the center.
        alignment: "monotonic" (local-m) or "predictive" (local-p).
        **kwargs: see `LuongAttention`.

    Call arguments:
        query: (B, T, D) float. With `projected_memory`, (B * K, T, D): K
            hypotheses of each item, which read the same memory.
        memory: (B, S, M) float, or None if `projected_memory` is given.
        memory_mask: (B, S) bool, True at real positions. By default the
            Keras mask of `memory`, if it has one.
        projected_memory: the output of `project_memory(memory)`.
        return_weights: bool, whether to return the weights too.
        positions: (B, T) int, or (B * K, T), the t of each query. By default
            0, 1 and so on.

    Returns:
        context, (B, T, M), or `(context, weights)` with weights (B, T, S).
        Both are zero if all positions are masked.

    Raises:
        ValueError: if an argument is out of range or does not fit the score.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 8))
        >>> attention = LocalAttention("dot", window=1, alignment="monotonic")
        >>> _, weights = attention(query, memory, return_weights=True)
        >>> keras.ops.convert_to_numpy(weights[0, 0]).round(2)
        array([0.5, 0.5, 0. , 0. , 0. , 0. , 0. ], dtype=float32)

    Reference:
        Luong et al. 2015, arXiv:1508.04025, section 3.2.
    """

    def __init__(
        self,
        score: str = "general",
        units: int | None = None,
        window: int = 10,
        alignment: str = "predictive",
        **kwargs,
    ):
        check_integers(window=window)
        check_choice("alignment", alignment, _ALIGNMENTS)
        super().__init__(score, units, window, **kwargs)
        self.alignment = alignment

    @property
    def reads_positions(self) -> bool:
        """Whether `AttentionDecoder` gives it the number of each step."""
        return self.alignment == "monotonic"

    def build(self, query_shape, memory_shape):
        super().build(query_shape, memory_shape)
        if self.alignment == "predictive":
            units = query_shape[-1]
            self.center_projection = projection(
                self, units, "center_projection"
            )
            self.center_projection.build(query_shape)
            self.center_scale = self.add_weight(
                shape=(units,),
                initializer="glorot_uniform",
                name="center_scale",
            )

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights: bool = False,
        positions=None,
    ):
        keys, values = self.projected(
            query, memory, projected_memory, memory_mask
        )
        folded = fold_hypotheses(query, values)  # (B, K * T, D)
        if memory_mask is None:
            memory_mask = ops.ones(ops.shape(values)[:2], dtype="bool")
        real = ops.cast(memory_mask, "float32")
        if self.alignment == "predictive":
            length = ops.sum(real, axis=1, keepdims=True)
            center = length * self._relative_center(folded)
        else:
            if positions is None:
                steps = range_of(ops.shape(query)[1], PLACES)
                positions = ops.broadcast_to(steps, ops.shape(query)[:2])
            positions = ops.cast(positions, "float32")[..., None]
            center = fold_hypotheses(positions, values)[..., 0]

        places = ops.cumsum(real, axis=1) - 1
        distance = places[:, None] - center[..., None]  # (B, K * T, S)
        is_near = ops.abs(distance) <= self.window
        admitted = ops.logical_and(is_near, memory_mask[:, None])
        weights = masked_softmax(self.energies(folded, keys), admitted)
        if self.alignment == "predictive":
            nearness = ops.exp(-2 * ops.square(distance / self.window))
            weights = weights * ops.cast(nearness, weights.dtype)
        context = unfold_hypotheses(weighted_sum(weights, values), query)
        if not return_weights:
            return context
        return context, unfold_hypotheses(weights, query)

    def _relative_center(self, query):
        """From 0 to 1, in float32: (B, T, D) -> (B, T)."""
        hidden = ops.tanh(self.center_projection(query)) * self.center_scale
        return ops.sigmoid(ops.sum(ops.cast(hidden, "float32"), axis=-1))

    def get_config(self) -> dict:
        return {**super().get_config(), "alignment": self.alignment}
