"""Words as vectors, some of them hidden in training."""

import keras
from keras import ops

from kseq.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="kseq")
class WordEmbedding(keras.layers.Layer):
    """An embedding that drops features, and whole words, in training.

    A classifier that now and then has to do without the word that gives the
    label away learns from the others too.

    Args:
        vocab_size: int.
        dim: int, E.
        dropout: float, share of the features dropped.
        word_dropout: float, share of the words dropped.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        ids: (..., T) int.
        training: bool, whether to drop.

    Returns:
        (..., T, E).

    Example:
        >>> WordEmbedding(30, dim=8)(np.array([[4, 5, 6]])).shape
        TensorShape([1, 3, 8])

    Reference:
        Iyyer et al. 2015, aclanthology.org/P15-1162, section 3.1, which does
        not scale up what remains, as we do.
    """

    def __init__(
        self, vocab_size, dim, dropout=0.0, word_dropout=0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.dim = dim
        self.dropout = dropout
        self.word_dropout = word_dropout
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
        self.word_dropout_layer = Dropout(
            word_dropout, dtype=self.dtype_policy, name="word_dropout"
        )

    def build(self, ids_shape):
        self.embedding.build(ids_shape)

    def call(self, ids, training=None):
        x = self.dropout_layer(self.embedding(ids), training=training)
        if not training or not self.word_dropout:
            return x
        words = ops.ones(ops.shape(ids), dtype=self.compute_dtype)
        kept = self.word_dropout_layer(words, training=True)
        return x * kept[..., None]

    @property
    def vectors(self):
        """The variable (V, E), to be read or assigned."""
        return self.embedding.embeddings

    def compute_output_shape(self, ids_shape):
        return (*ids_shape, self.dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "dim": self.dim,
            "dropout": self.dropout,
            "word_dropout": self.word_dropout,
        }
