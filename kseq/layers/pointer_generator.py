"""Copies of source tokens, mixed with the tokens of a vocabulary."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.ops import fold_hypotheses, unfold_hypotheses
from kseq.ops.masks import PLACES, range_of

_LEAST = 1e-10  # the probability of a copy of what is not in the source


@keras.saving.register_keras_serializable(package="kseq")
class PointerGenerator(keras.layers.Layer):
    """Mixes the vocabulary's distribution with that of the source's tokens.

        p_gen = sigmoid(w . y + b)
        P(v)  = p_gen softmax(logits)_v
                + (1 - p_gen) sum of weights where the source is v

    Source and target share one vocabulary, so that every token of the source
    has a place in it. All is computed in float32 with logarithms.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        logits: (B, T, V) float.
        outputs: (B, T, D) float, y, the outputs of a decoder with attention.
        weights: (B, T, S) float, of its attention.
        source_ids: (B, S) int. With K hypotheses of each item the others are
            (B * K, ...).

    Returns:
        (B, T, V), in the dtype of the layer, logarithms of P: logits whose
        softmax is P.

    Example:
        >>> logits, outputs = np.zeros((1, 1, 3)), np.zeros((1, 1, 2))
        >>> weights, source_ids = np.array([[[0.5, 0.5]]]), np.array([[1, 1]])
        >>> mixed = PointerGenerator()(logits, outputs, weights, source_ids)
        >>> np.exp(mixed[0, 0]).round(3)
        array([0.167, 0.667, 0.167], dtype=float32)

    Reference:
        See et al. 2017, arXiv:1704.04368, section 2.2. Unlike the paper, p_gen
        reads the output of the decoder, which is made of its state and its
        context, and no token is outside of the vocabulary: it is of pieces.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.gate = keras.layers.Dense(1, dtype=self.dtype_policy, name="gate")

    def build(
        self, logits_shape, outputs_shape, weights_shape, source_ids_shape
    ):
        self.gate.build(outputs_shape)

    def call(self, logits, outputs, weights, source_ids):
        logits, outputs, weights = (
            ops.cast(x, "float32") for x in (logits, outputs, weights)
        )
        gate = ops.cast(self.gate(outputs), "float32")
        written = ops.log_sigmoid(gate) + ops.log_softmax(logits)
        copied = _summed_by_token(weights, source_ids, logits.shape[-1])
        copied = ops.log_sigmoid(-gate) + ops.log(copied + _LEAST)
        return ops.cast(ops.logaddexp(written, copied), self.compute_dtype)

    def compute_output_shape(
        self, logits_shape, outputs_shape, weights_shape, source_ids_shape
    ):
        return logits_shape

    def get_config(self) -> dict:
        return config_of(self, PointerGenerator)


def _summed_by_token(weights, ids, vocab_size):
    """The weights of each token: (B * K, T, S), (B, S) -> (B * K, T, V)."""
    folded = fold_hypotheses(weights, ids)  # (B, K * T, S)
    batch, time, _ = ops.shape(folded)
    size = batch * time * vocab_size
    first = range_of(batch * time, PLACES) * vocab_size
    first = ops.reshape(first, (batch, time, 1))
    places = first + ops.cast(ids, PLACES)[:, None]
    sums = ops.segment_sum(
        ops.reshape(folded, (-1,)), ops.reshape(places, (-1,)), size
    )
    return unfold_hypotheses(
        ops.reshape(sums, (batch, time, vocab_size)), weights
    )
