"""A bidirectional LSTM that tags each word of a sentence."""

import keras
from keras import layers

from kseq.layers import Dropout, FlattenSentences, PieceEmbedding
from kseq.layers.flatten_sentences import first_piece_states
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.models.recurrent_encoder import read_source, recurrent_encoder
from kseq.models.source_inputs import id_inputs
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class LSTMTagger(ExactModel):
    """A bidirectional LSTM that tags each word of a sentence.

        h = LSTM layers, each in both directions, over the pieces of all words
        logits of a word = W h_t + b, where t is its first piece

    That state depends on the whole sentence: the backward direction has read
    the other pieces of the word, and what follows.

    Args:
        vocab_size: int.
        num_tags: int, C.
        embedding_dim: int.
        units: int, width of a layer; each direction has half of it.
        num_layers: int.
        dropout: float, on the inputs of each layer and of the last one.
        piece_dropout: float, on whole pieces.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, W, P) int32: the pieces of each word,
            padded with PAD.

    Returns:
        logits, (B, W, C) float32.

    Raises:
        ArgumentError: if an argument does not fit the others.

    Example:
        >>> model = LSTMTagger(30, 4, embedding_dim=8, units=6, num_layers=1)
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> model({"source_ids": ids}).shape
        TensorShape([2, 2, 4])

    Reference:
        Huang et al. 2015, arXiv:1508.01991, section 2.2, the BI-LSTM network.
        Unlike the paper, words are read as pieces.
    """

    def __init__(
        self,
        vocab_size: int,
        num_tags: int,
        *,
        embedding_dim: int,
        units: int,
        num_layers: int,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "lstm_tagger",
        **kwargs,
    ):
        set_sizes(
            self,
            vocab_size=vocab_size,
            num_tags=num_tags,
            embedding_dim=embedding_dim,
            units=units,
            num_layers=num_layers,
        )
        set_rates(self, dropout=dropout, piece_dropout=piece_dropout)

        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.join = FlattenSentences(dtype=policy, name="join")
        self.embedding = PieceEmbedding(
            vocab_size,
            embedding_dim,
            piece_dropout=piece_dropout,
            dtype=policy,
            name="embedding",
        )
        self.encoder = recurrent_encoder(
            num_layers, units, "lstm", bidirectional=True, policy=policy
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.classes = layers.Dense(num_tags, dtype=policy, name="classes")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        inputs = id_inputs("source_ids", axes=3)
        source_ids = inputs["source_ids"]
        ids = self.join(source_ids)  # (B, T)
        # Inputs of unit variance, as those of the other layers.
        x = self.embedding(ids) * embedding_dim**0.5
        mask = padding_mask(ids)
        x, _ = read_source(self.encoder, x, mask, self.dropout_layer, True)
        words = first_piece_states(x, source_ids)
        logits = self.logits(self.classes(self.dropout_layer(words)))
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def get_config(self) -> dict:
        return config_of(self, LSTMTagger)
