"""Pieces predicted from those before them, and from those after them."""

import keras
from keras import layers, ops

from kseq.layers.layer_config import with_layers
from kseq.models.arguments import config_of
from kseq.models.exact_model import ExactModel
from kseq.models.source_inputs import id_inputs

# The logit of a candidate that is the label itself; float16 can hold it.
_EXCLUDED = -3e4


@keras.saving.register_keras_serializable(package="kseq")
class PiecePrediction(ExactModel):
    """Pretrains the recurrent layer of a classifier on text without labels.

    Each piece is predicted among some others, the candidates, once from the
    pieces before it and once from those after it:

        logits_t = [x_t; candidates] . W_1 forward RNN(x)_{t-1}
        logits_t = [x_t; candidates] . W_2 backward RNN(x)_{t+1}

    with one embedding for inputs and outputs. If candidates are sampled in
    proportion to their frequency in the text, the logit of a piece w tends to
    log(P(w | context) / P(w)) plus a constant.

    Args:
        embedding: `PieceEmbedding`, shared with the classifier.
        recurrent: its `keras.layers.Bidirectional` over pieces, shared too.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, T) int32, T at least 3, and of
            `candidates` (B, K) int32, the same in each row, so that a batch
            can be split.

    Returns:
        logits, (B, T - 2, 2, 1 + K) float32, of the pieces from the second
        to the last but one, in both directions. All labels are 0.

    Example:
        >>> embedding = kseq.layers.PieceEmbedding(30, dim=8)
        >>> rnn = keras.layers.GRU(5, return_sequences=True)
        >>> model = PiecePrediction(embedding, keras.layers.Bidirectional(rnn))
        >>> ids, candidates = np.array([[4, 5, 6, 7]]), np.array([[8, 9]])
        >>> model({"source_ids": ids, "candidates": candidates}).shape
        TensorShape([1, 2, 2, 3])

    Reference:
        Dai and Le 2015, arXiv:1511.01432, section 2, in both directions. The
        loss is that of Mikolov et al. 2013, arXiv:1310.4546, section 2.2, but
        with a softmax over the candidates.
    """

    def __init__(
        self,
        embedding: keras.layers.Layer,
        recurrent: keras.layers.Layer,
        *,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "piece_prediction",
        **kwargs,
    ):
        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.embedding = embedding
        self.recurrent = recurrent
        self.projections = [
            layers.Dense(embedding.dim, dtype=policy, name=direction)
            for direction in ("forward", "backward")
        ]
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        inputs = id_inputs("source_ids", "candidates")
        hidden = recurrent(embedding(inputs["source_ids"]))
        before, after = ops.split(hidden, 2, axis=-1)
        pieces = inputs["source_ids"][:, 1:-1]
        others = one_row(inputs["candidates"])
        logits = [
            candidate_logits(embedding, projection(states), pieces, others)
            for projection, states in zip(
                self.projections, (before[:, :-2], after[:, 2:]), strict=True
            )
        ]
        logits = self.logits(ops.stack(logits, axis=2))
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def get_config(self) -> dict:
        return config_of(self, PiecePrediction, "embedding", "recurrent")

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "embedding", "recurrent"))


def one_row(candidates):
    """(B, K) of equal rows -> (K,), also if a device has none of them."""
    return ops.max(candidates, axis=0, initial=0)


def candidate_logits(embedding, query, pieces, others):
    """The logits of a piece and of other candidates.

    Args:
        embedding: `PieceEmbedding`, of inputs and outputs.
        query: (B, T, E).
        pieces: (B, T) int, which are looked for.
        others: (K,) int. One that is the piece itself is excluded.

    Returns:
        (B, T, 1 + K), the piece first.
    """
    vectors = embedding(pieces, training=False)
    of_piece = ops.sum(query * vectors, axis=-1, keepdims=True)
    vectors = embedding(others, training=False)
    of_others = ops.matmul(query, ops.transpose(vectors))
    is_piece = ops.equal(pieces[..., None], others)
    of_others = ops.where(is_piece, _EXCLUDED, of_others)
    return ops.concatenate([of_piece, of_others], axis=-1)
