"""Flat attention: a document as one long sentence."""

import keras

from kseq.layers import PieceEmbedding, RecurrentPooling
from kseq.models.flat_classifier import FlatClassifier
from kseq.models.language_model import LanguageModel


@keras.saving.register_keras_serializable(package="kseq")
class FlatAttention(FlatClassifier):
    """A classifier of documents that knows nothing of sentences.

        document = attention over the words of [forward RNN; backward RNN]
        logits = W document + b

    What hierarchical attention has to beat.

    Args:
        vocab_size: int.
        num_classes: int, C.
        embedding_dim: int.
        units: int, of each direction.
        attention_units: int, size of the learned query.
        dropout: float, on embeddings and documents.
        word_dropout: float, on whole words.
        sentence_dropout: float, on whole sentences.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, L, W) int32, as
            `HierarchicalAttention` takes them.

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
        vocab_size,
        num_classes,
        *,
        embedding_dim,
        units,
        attention_units,
        dropout=0.0,
        word_dropout=0.0,
        sentence_dropout=0.0,
        dtype=None,
        name="flat_attention",
        **kwargs,
    ):
        policy = keras.dtype_policies.get(dtype)
        self.embedding = PieceEmbedding(
            vocab_size,
            embedding_dim,
            dropout=dropout,
            piece_dropout=word_dropout,
            dtype=policy,
            name="embedding",
        )
        self.document_encoder = RecurrentPooling(
            units,
            attention_units,
            dtype=policy,
            name="document_encoder",
        )
        self.vocab_size = vocab_size
        self.embedding_dim = embedding_dim
        self.units = units
        self.attention_units = attention_units
        self.word_dropout = word_dropout
        super().__init__(
            num_classes,
            dropout=dropout,
            sentence_dropout=sentence_dropout,
            dtype=policy,
            name=name,
            **kwargs,
        )

    def language_model(self):
        """A `LanguageModel` that teaches the embedding and the RNN of words."""
        recurrent = self.document_encoder.recurrent
        return LanguageModel(self.embedding, recurrent, dtype=self.dtype_policy)

    def _read(self, ids, mask):
        return self.document_encoder(
            self.embedding(ids), mask, return_weights=True
        )

    def get_config(self):
        names = (
            "vocab_size",
            "num_classes",
            "embedding_dim",
            "units",
            "attention_units",
            "dropout",
            "word_dropout",
            "sentence_dropout",
            "name",
        )
        config = {name: getattr(self, name) for name in names}
        return {**config, "dtype": self.dtype_policy.name}
