"""SentencePiece pieces as vectors, with dropout of features and of pieces."""

import keras

from kseq.layers.dropout import Dropout, PieceDropout
from kseq.layers.layer_config import config_of
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class PieceEmbedding(keras.layers.Layer):
    """An embedding that drops features, and whole pieces, in training.

    A classifier that has to read without the most informative piece learns to
    use the other pieces too.

    Args:
        vocab_size: int, number of SentencePiece pieces.
        dim: int, E.
        dropout: float, rate at which features are dropped.
        piece_dropout: float, rate at which pieces are dropped.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        ids: (..., T) int.
        training: bool, whether to apply dropout.

    Returns:
        (..., T, E), in the dtype of the layer.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> PieceEmbedding(30, dim=8)(np.array([[4, 5, 6]])).shape
        TensorShape([1, 3, 8])

    Reference:
        Iyyer et al. 2015, aclanthology.org/P15-1162, section 3.1. Unlike the
        paper, the remaining pieces are scaled up.
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        **kwargs,
    ):
        check_integers(vocab_size=vocab_size, dim=dim)
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.dim = dim
        self.dropout = dropout
        self.piece_dropout = piece_dropout
        self.embedding = keras.layers.Embedding(
            vocab_size,
            dim,
            embeddings_initializer=keras.initializers.RandomNormal(
                stddev=dim**-0.5
            ),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.dropout_layer = Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )
        self.piece_dropout_layer = PieceDropout(
            piece_dropout, dtype=self.dtype_policy, name="piece_dropout"
        )

    def build(self, ids_shape):
        self.embedding.build(ids_shape)

    def call(self, ids, training: bool | None = None):
        x = self.dropout_layer(self.embedding(ids), training=training)
        return self.piece_dropout_layer(x, training=training)

    @property
    def vectors(self):
        """The variable (V, E), to be read or assigned."""
        return self.embedding.embeddings

    def compute_output_shape(self, ids_shape):
        return (*ids_shape, self.dim)

    def get_config(self) -> dict:
        return config_of(self, PieceEmbedding)
