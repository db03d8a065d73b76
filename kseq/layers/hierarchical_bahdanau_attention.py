"""Additive attention to the words of each turn, and to the turns."""

import keras
from keras import ops

from kseq.layers.attention_scores import BahdanauAttention, projection
from kseq.ops import (
    additive_energies,
    fold_hypotheses,
    masked_softmax,
    unfold_hypotheses,
    weighted_sum,
)


@keras.saving.register_keras_serializable(package="kseq")
class HierarchicalBahdanauAttention(BahdanauAttention):
    """Additive attention to the words of each turn, and to the turns.

        alpha_i = softmax over the words j of v . tanh(W q + U m_ij)
        r_i     = sum over j of alpha_ij * m_ij
        beta    = softmax over the turns i of v' . tanh(W' q + U' r_i)
        context = sum over i of beta_i * r_i

    The weight of a word is beta_i * alpha_ij, so that those of a turn sum to
    beta_i. The memory is flat: the words of the first turn, then those of the
    second. Its mask shows where the turns are, see `HierarchicalEncoder`.

    Args:
        units: int, width of both hidden layers.
        use_bias: bool, whether each projection has a bias.
        kernel_initializer: of W, U, W' and U'.
        kernel_constraint: of W, U, W' and U'.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        query: (B, T, D) float. With `projected_memory`, (B * K, T, D): K
            hypotheses of each item, which read the same memory.
        memory: (B, N * W, M) float, or None if `projected_memory` is given.
        memory_mask: (B, N, W) bool, True at real words of N turns.
        projected_memory: the output of `project_memory(memory)`.
        return_weights: bool, whether to return the weights too.

    Returns:
        context, (B, T, M), or `(context, weights)` with weights
        (B, T, N * W). Both are zero if all positions are masked; the weights
        of a turn without words are.

    Raises:
        ValueError: if an argument is out of range, or the mask is not that of
            turns.

    Example:
        >>> query, memory = np.ones((2, 5, 8)), np.ones((2, 12, 16))
        >>> mask = np.ones((2, 3, 4), bool)  # 3 turns of 4 words
        >>> attention = HierarchicalBahdanauAttention(units=32)
        >>> attention(query, memory, memory_mask=mask).shape
        TensorShape([2, 5, 16])

    Reference:
        Xing et al. 2018, arXiv:1701.07149. There, a recurrent layer reads the
        r_i at each step of the decoder, from the last turn to the first; here,
        that of the encoder reads the turns once, in both directions.
    """

    reads_turns = True

    def __init__(
        self,
        units: int,
        use_bias: bool = False,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        kernel_constraint: keras.constraints.Constraint | None = None,
        **kwargs,
    ):
        super().__init__(
            units,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            kernel_constraint=kernel_constraint,
            **kwargs,
        )
        self.turn_query_projection = projection(
            self, units, "turn_query_projection"
        )
        self.turn_projection = projection(self, units, "turn_projection")

    def build(self, query_shape, memory_shape):
        super().build(query_shape, memory_shape)
        self.turn_query_projection.build(query_shape)
        self.turn_projection.build(memory_shape)
        self.turn_scale = self.add_weight(
            shape=(self.units,), initializer="glorot_uniform", name="turn_scale"
        )

    def project_memory(self, memory):
        """Projections without the query: keys of words, of turns, values.

        Since the weights of a turn sum to 1, the projection of r_i is the
        weighted sum of projected words.
        """
        keys, values = super().project_memory(memory)
        return keys, self.turn_projection(memory), values

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        return_weights: bool = False,
    ):
        if memory_mask is None or len(memory_mask.shape) != 3:
            raise ValueError(
                "memory_mask must be (B, N, W), the words of N turns, for a "
                "memory (B, N * W, M), as HierarchicalEncoder returns both. "
                f"Received: memory_mask={getattr(memory_mask, 'shape', None)}"
            )
        projected = self.projected(query, memory, projected_memory, memory_mask)
        keys, turn_keys, values = projected
        folded = fold_hypotheses(query, values)
        weights = self._weights(folded, keys, turn_keys, memory_mask)
        context = unfold_hypotheses(weighted_sum(weights, values), query)
        if not return_weights:
            return context
        return context, unfold_hypotheses(weights, query)

    def _weights(self, query, keys, turn_keys, mask):
        """(B, T, D), (B, S, U), (B, S, U), (B, N, W) -> (B, T, S)."""
        batch, turns, words = ops.shape(mask)
        energies = self.energies(query, keys)
        by_word = ops.shape(energies)
        energies = ops.reshape(energies, (*by_word[:2], turns, words))
        alpha = masked_softmax(energies, mask[:, None])  # (B, T, N, W)

        shape = (batch, turns, words, self.units)
        turn_keys = ops.einsum(
            "btnw,bnwu->btnu", alpha, ops.reshape(turn_keys, shape)
        )
        hidden = self.turn_query_projection(query)[:, :, None]
        energies = additive_energies(hidden, turn_keys, self.turn_scale)
        has_words = ops.any(mask, axis=-1)[:, None, None]
        beta = masked_softmax(energies, has_words)  # (B, T, 1, N)
        return ops.reshape(alpha * ops.swapaxes(beta, -1, -2), by_word)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["window"], config["shared"]
        return config
