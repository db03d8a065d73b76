"""Sentences of documents as vectors, without a computation on padding."""

import keras
from keras import ops

from kseq.layers.piece_embedding import PieceEmbedding
from kseq.layers.recurrent_pooling import RecurrentPooling
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class SentenceEncoder(keras.layers.Layer):
    """Words of the sentences of documents, each sentence to one vector.

    `PieceEmbedding`, and `RecurrentPooling` over the words of each sentence.

    In a batch of documents most places are padding, for sentences differ in
    length and documents in their number of sentences. So the sentences of all
    documents are sorted by length and cut into groups of as many sentences,
    each as wide as its longest. The result is that of one large grid.

    Args:
        vocab_size: int.
        embedding_dim: int, E.
        units: int, U, of each direction.
        attention_units: int, see `AttentionPooling`.
        cell: "gru" or "lstm".
        dropout: float, on the features of the embeddings.
        piece_dropout: float, on whole words.
        groups: int; 1 for the large grid, and where a compiler wants shapes
            that do not depend on values, as that of JAX does.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        ids: (B, L, W) int, words of sentences, padded with PAD.
        training: bool, whether to drop.
        return_weights: bool, whether to return the weights too.

    Returns:
        output, (B, L, 2 U), or `(output, weights)` with weights (B, L, W).
        Both are zero for a sentence of padding alone.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> encoder = SentenceEncoder(
        ...     30, embedding_dim=8, units=5, attention_units=5
        ... )
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> encoder(ids).shape
        TensorShape([2, 2, 10])

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, section 2.2.
    """

    def __init__(
        self,
        vocab_size,
        embedding_dim,
        units,
        attention_units,
        cell="gru",
        dropout=0.0,
        piece_dropout=0.0,
        groups=4,
        **kwargs,
    ):
        if groups < 1:
            raise ValueError(
                f"groups must be positive. Received: groups={groups}"
            )
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.embedding_dim = embedding_dim
        self.units = units
        self.attention_units = attention_units
        self.cell = cell
        self.dropout = dropout
        self.piece_dropout = piece_dropout
        self.groups = groups
        self.embedding = PieceEmbedding(
            vocab_size,
            embedding_dim,
            dropout=dropout,
            piece_dropout=piece_dropout,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.pooling = RecurrentPooling(
            units,
            attention_units,
            cell=cell,
            dtype=self.dtype_policy,
            name="pooling",
        )

    def build(self, ids_shape):
        self.embedding.build(ids_shape)
        self.pooling.build((None, None, self.embedding_dim))

    def call(self, ids, training=None, return_weights=False):
        batch, sentences, words = ops.shape(ids)
        count = batch * sentences
        rows = ops.reshape(ids, (count, words))
        places = ops.arange(1, words + 1, dtype="int32")
        lengths = ops.max(
            ops.cast(padding_mask(rows), "int32") * places, axis=-1, initial=1
        )
        order = ops.argsort(lengths)

        outputs, weights = [], []
        for group in range(self.groups):
            start = count * group // self.groups
            end = count * (group + 1) // self.groups
            chosen = order[start:end]
            width = ops.max(ops.take(lengths, chosen), initial=1)
            group_ids = ops.take(rows, chosen, axis=0)[:, :width]
            output, weight = self._encode(group_ids, training)
            rest = ops.zeros((end - start, words - width), weight.dtype)
            outputs.append(output)
            weights.append(ops.concatenate([weight, rest], axis=-1))

        back = ops.argsort(order)
        output = ops.take(ops.concatenate(outputs, axis=0), back, axis=0)
        output = ops.reshape(output, (batch, sentences, 2 * self.units))
        if not return_weights:
            return output
        weight = ops.take(ops.concatenate(weights, axis=0), back, axis=0)
        return output, ops.reshape(weight, (batch, sentences, words))

    def _encode(self, ids, training):
        x = self.embedding(ids, training=training)
        return self.pooling(x, padding_mask(ids), return_weights=True)

    def compute_output_shape(self, ids_shape):
        return (*ids_shape[:2], 2 * self.units)

    def compute_output_spec(self, ids, training=None, return_weights=False):
        shape = self.compute_output_shape(ids.shape)
        output = keras.KerasTensor(shape, dtype=self.compute_dtype)
        if not return_weights:
            return output
        return output, keras.KerasTensor(ids.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "embedding_dim": self.embedding_dim,
            "units": self.units,
            "attention_units": self.attention_units,
            "cell": self.cell,
            "dropout": self.dropout,
            "piece_dropout": self.piece_dropout,
            "groups": self.groups,
        }
