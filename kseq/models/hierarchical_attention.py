"""Hierarchical attention: words to sentences, sentences to a document."""

import keras
from keras import layers, ops

from kseq.layers import (
    Dropout,
    NgramLogits,
    PieceEmbedding,
    RecurrentPooling,
    SentenceDropout,
    SentenceEncoder,
)
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.models.piece_prediction import PiecePrediction
from kseq.models.source_inputs import id_inputs
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class HierarchicalAttention(ExactModel):
    """A classifier of documents that reads words, then sentences.

        sentence = attention over the words of [forward GRU; backward GRU]
        document = attention over the sentences of [forward GRU; backward GRU]
        logits = W document + b

    Words are what `source_ids` hold: SentencePiece pieces in the recipes.

    Args:
        vocab_size: int.
        num_classes: int, C.
        embedding_dim: int.
        units: int, of each direction, on both levels.
        attention_units: int, size of the learned queries.
        dropout: float, on embeddings, sentences and documents.
        piece_dropout: float, on whole words.
        sentence_dropout: float, on whole sentences.
        ngrams: int, maximum words of the n-grams that are combined with the
            network, see `kseq.layers.NgramLogits`; 0 for none.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, L, W) int32, the words of sentences,
            padded with PAD on both axes.

    Returns:
        logits, (B, C) float32.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> model = HierarchicalAttention(
        ...     30, 2, embedding_dim=8, units=5, attention_units=5
        ... )
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> model({"source_ids": ids}).shape
        TensorShape([2, 2])

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174. Dropout is ours.
    """

    def __init__(
        self,
        vocab_size: int,
        num_classes: int,
        *,
        embedding_dim: int,
        units: int,
        attention_units: int,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        sentence_dropout: float = 0.0,
        ngrams: int = 0,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "hierarchical_attention",
        **kwargs,
    ):
        set_sizes(
            self,
            vocab_size=vocab_size,
            num_classes=num_classes,
            embedding_dim=embedding_dim,
            units=units,
            attention_units=attention_units,
        )
        set_rates(
            self,
            dropout=dropout,
            piece_dropout=piece_dropout,
            sentence_dropout=sentence_dropout,
        )

        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.sentence_dropout_layer = SentenceDropout(
            sentence_dropout, dtype=policy, name="sentence_dropout"
        )
        self.sentence_encoder = SentenceEncoder(
            vocab_size,
            embedding_dim,
            units,
            attention_units,
            dropout=dropout,
            piece_dropout=piece_dropout,
            dtype=policy,
            name="sentence_encoder",
        )
        self.document_encoder = RecurrentPooling(
            units, attention_units, dtype=policy, name="document_encoder"
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.classes = layers.Dense(num_classes, dtype=policy, name="classes")
        self.logits = NgramLogits(num_classes, ngrams=ngrams, name="logits")
        self.ngrams = self.logits.ngrams

        # Graph
        inputs = id_inputs("source_ids", axes=3)
        logits = self.explain(inputs)["logits"]
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    @property
    def embedding(self) -> PieceEmbedding:
        """The embedding of the pieces."""
        return self.sentence_encoder.embedding

    def explain(self, inputs: dict) -> dict:
        """The logits, and the weights of what they depend on.

        Args:
            inputs: dict of `source_ids` (B, L, W) int.

        Returns:
            A dict: `logits` (B, C) float32; `sentence_weights` (B, L) and
            `word_weights` (B, L, W) float32, which sum to 1 over the
            sentences of a document and over the words of a sentence.
        """
        source_ids = self.sentence_dropout_layer(inputs["source_ids"])
        sentence_mask = ops.any(padding_mask(source_ids), axis=-1)
        sentences, word_weights = self.sentence_encoder(
            source_ids, return_weights=True
        )
        document, sentence_weights = self.document_encoder(
            self.dropout_layer(sentences), sentence_mask, return_weights=True
        )
        logits = self.classes(self.dropout_layer(document))
        return {
            "logits": self.logits(logits, inputs["source_ids"]),
            "sentence_weights": ops.cast(sentence_weights, "float32"),
            "word_weights": ops.cast(word_weights, "float32"),
        }

    def piece_prediction(self) -> PiecePrediction:
        """A `PiecePrediction` that trains the embedding and the first GRU."""
        recurrent = self.sentence_encoder.pooling.recurrent
        return PiecePrediction(
            self.embedding, recurrent, dtype=self.dtype_policy
        )

    def get_config(self) -> dict:
        return config_of(self, HierarchicalAttention)
