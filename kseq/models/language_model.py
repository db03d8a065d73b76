"""Words predicted from those before them, and from those behind them."""

import keras
from keras import layers, ops

from kseq.models.exact_model import ExactModel

# The logit of a candidate that is the word itself; it fits float16.
_LEFT_OUT = -3e4


@keras.saving.register_keras_serializable(package="kseq")
class LanguageModel(ExactModel):
    """Teaches the reader of a classifier what text is like, without labels.

    Each word is told from some others, the candidates, once by what stands
    before it and once by what stands behind it:

        logits_t = [x_t; candidates] . W_1 forward RNN(x)_{t-1}
        logits_t = [x_t; candidates] . W_2 backward RNN(x)_{t+1}

    with the same embeddings for what is read and what is told. If candidates
    are drawn as often as they occur, the logit of a word w tends to
    log(P(w | context) / P(w)) and a constant: what the context says of it.

    Args:
        embedding: `PieceEmbedding`, shared with the model to be taught.
        recurrent: its `keras.layers.Bidirectional` over words, shared too.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, T) int32, T at least 3, and of
            `candidates` (B, K) int32, the same in each row, so that a batch
            can be cut.

    Returns:
        logits, (B, T - 2, 2, 1 + K) float32, of the words from the second to
        the last but one, in both directions. Label 0 is right.

    Example:
        >>> embedding = kseq.layers.PieceEmbedding(30, dim=8)
        >>> rnn = keras.layers.GRU(5, return_sequences=True)
        >>> model = LanguageModel(embedding, keras.layers.Bidirectional(rnn))
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
        embedding,
        recurrent,
        *,
        dtype=None,
        name="language_model",
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
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        candidates = keras.Input((None,), dtype="int32", name="candidates")
        hidden = recurrent(embedding(source_ids))
        before, behind = ops.split(hidden, 2, axis=-1)
        words = source_ids[:, 1:-1]
        # Its rows are alike, and a device may have got none of them.
        others = ops.max(candidates, axis=0, initial=0)  # (K,)
        logits = [
            self._logits(projection(states), words, others)
            for projection, states in zip(
                self.projections, (before[:, :-2], behind[:, 2:]), strict=True
            )
        ]
        super().__init__(
            inputs={"source_ids": source_ids, "candidates": candidates},
            outputs=self.logits(ops.stack(logits, axis=2)),
            dtype=policy,
            name=name,
            **kwargs,
        )

    def _logits(self, query, words, others):
        """(B, T, E), (B, T), (K,) -> (B, T, 1 + K)."""
        vectors = self.embedding(words, training=False)
        of_word = ops.sum(query * vectors, axis=-1, keepdims=True)
        vectors = self.embedding(others, training=False)
        of_others = ops.matmul(query, ops.transpose(vectors))
        is_word = ops.equal(words[..., None], others)
        of_others = ops.where(is_word, _LEFT_OUT, of_others)
        return ops.concatenate([of_word, of_others], axis=-1)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            "embedding": serialize(self.embedding),
            "recurrent": serialize(self.recurrent),
            "dtype": self.dtype_policy.name,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        parts = ("embedding", "recurrent")
        return cls(
            **config | {name: deserialize(config[name]) for name in parts}
        )
