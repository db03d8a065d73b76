"""Flat attention: a document as one long sentence."""

import keras
from keras import layers, ops

from kseq.layers import (
    Dropout,
    FlattenSentences,
    NgramLogits,
    PieceEmbedding,
    RecurrentPooling,
    SentenceDropout,
)
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.models.piece_prediction import PiecePrediction
from kseq.models.source_inputs import id_inputs
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class FlatAttention(ExactModel):
    """A classifier of documents that does not distinguish sentences.

        document = attention over the pieces of [forward GRU; backward GRU]
        logits = W document + b

    The baseline of hierarchical attention.

    Args:
        vocab_size: int.
        num_classes: int, C.
        embedding_dim: int.
        units: int, of each direction.
        attention_units: int, size of the learned query.
        dropout: float, on embeddings and documents.
        piece_dropout: float, on whole pieces.
        sentence_dropout: float, on whole sentences.
        ngrams: int, maximum words of the n-grams that are combined with the
            network, see `kseq.layers.NgramLogits`; 0 for none.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, L, W) int32, the same as for
            `HierarchicalAttention`.

    Returns:
        logits, (B, C) float32.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> model = FlatAttention(
        ...     30, 2, embedding_dim=8, units=5, attention_units=5
        ... )
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> model({"source_ids": ids}).shape
        TensorShape([2, 2])

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, equations 1 to 7, over
        the whole document.
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
        name: str = "flat_attention",
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
        self.embedding = PieceEmbedding(
            vocab_size,
            embedding_dim,
            dropout=dropout,
            piece_dropout=piece_dropout,
            dtype=policy,
            name="embedding",
        )
        self.document_encoder = RecurrentPooling(
            units, attention_units, dtype=policy, name="document_encoder"
        )
        self.sentence_dropout_layer = SentenceDropout(
            sentence_dropout, dtype=policy, name="sentence_dropout"
        )
        self.join = FlattenSentences(dtype=policy, name="join")
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.classes = layers.Dense(num_classes, dtype=policy, name="classes")
        self.logits = NgramLogits(num_classes, ngrams=ngrams, name="logits")
        self.ngrams = self.logits.ngrams

        # Graph
        inputs = id_inputs("source_ids", axes=3)
        logits, _ = self._classify(**inputs)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def _classify(self, source_ids):
        ids = self.join(self.sentence_dropout_layer(source_ids))  # (B, T)
        document, weights = self.document_encoder(
            self.embedding(ids), padding_mask(ids), return_weights=True
        )
        logits = self.classes(self.dropout_layer(document))
        logits = self.logits(logits, source_ids)
        return logits, ops.cast(weights, "float32")

    def explain(self, inputs: dict) -> dict:
        """The same as `HierarchicalAttention.explain`.

        The weight of a sentence is the sum over its pieces.
        """
        source_ids = inputs["source_ids"]
        logits, weights = self._classify(source_ids)
        return self.join.explain(logits, weights, source_ids)

    def piece_prediction(self) -> PiecePrediction:
        """A `PiecePrediction` that trains the embedding and the GRU."""
        recurrent = self.document_encoder.recurrent
        return PiecePrediction(
            self.embedding, recurrent, dtype=self.dtype_policy
        )

    def get_config(self) -> dict:
        return config_of(self, FlatAttention)
