"""Sentences of documents as vectors, with little computation on padding."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.layers.piece_embedding import PieceEmbedding
from kseq.layers.recurrent_pooling import RecurrentPooling
from kseq.layers.xla import is_compiled_by_xla
from kseq.ops import padding_mask
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class SentenceEncoder(keras.layers.Layer):
    """Encodes each sentence of a document as one vector.

    `PieceEmbedding`, then `RecurrentPooling` over the pieces of a sentence.

    Most positions of a batch of documents are padding, since sentences differ
    in length and documents in their number of sentences. The sentences of all
    documents are therefore sorted by length and split into groups of equal
    size, each as wide as its longest sentence. The number of groups does not
    change the result.

    Args:
        vocab_size: int, number of SentencePiece pieces.
        embedding_dim: int, E.
        units: int, U, of each direction.
        attention_units: int, see `AttentionPooling`.
        dropout: float, on the features of the embeddings.
        piece_dropout: float, on whole pieces.
        groups: int, number of groups. It is 1 where XLA compiles the layer on
            TensorFlow; use 1 with JAX, whose compiler needs static shapes too.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        ids: (B, L, W) int, pieces of sentences, padded with PAD.
        training: bool, whether to apply dropout.
        return_weights: bool, whether to return the weights too.

    Returns:
        output, (B, L, 2 U), or `(output, weights)` with weights (B, L, W).
        Both are zero for a sentence without pieces.

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
        vocab_size: int,
        embedding_dim: int,
        units: int,
        attention_units: int,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        groups: int = 4,
        **kwargs,
    ):
        check_integers(groups=groups)
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.embedding_dim = embedding_dim
        self.units = units
        self.attention_units = attention_units
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
            dtype=self.dtype_policy,
            name="pooling",
        )

    def build(self, ids_shape):
        self.embedding.build(ids_shape)
        self.pooling.build((None, None, self.embedding_dim))

    def call(
        self, ids, training: bool | None = None, return_weights: bool = False
    ):
        batch, sentences, pieces = ops.shape(ids)
        count = batch * sentences
        rows = ops.reshape(ids, (count, pieces))
        if self.groups == 1 or is_compiled_by_xla():
            output, weights = self._encode(rows, training)
        else:
            output, weights = self._encode_groups(rows, training)
        output = ops.reshape(output, (batch, sentences, 2 * self.units))
        if not return_weights:
            return output
        return output, ops.reshape(weights, (batch, sentences, pieces))

    def _encode(self, ids, training):
        x = self.embedding(ids, training=training)
        return self.pooling(x, padding_mask(ids), return_weights=True)

    def _encode_groups(self, rows, training):
        count, pieces = ops.shape(rows)
        ends = ops.arange(1, pieces + 1, dtype="int32")
        lengths = ops.max(
            ops.cast(padding_mask(rows), "int32") * ends, axis=-1, initial=1
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
            rest = ops.zeros((end - start, pieces - width), weight.dtype)
            outputs.append(output)
            weights.append(ops.concatenate([weight, rest], axis=-1))

        inverse = ops.argsort(order)
        return tuple(
            ops.take(ops.concatenate(parts, axis=0), inverse, axis=0)
            for parts in (outputs, weights)
        )

    def compute_output_shape(self, ids_shape):
        return (*ids_shape[:2], 2 * self.units)

    def compute_output_spec(self, ids, training=None, return_weights=False):
        shape = self.compute_output_shape(ids.shape)
        output = keras.KerasTensor(shape, dtype=self.compute_dtype)
        if not return_weights:
            return output
        return output, keras.KerasTensor(ids.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict:
        return config_of(self, SentenceEncoder)
