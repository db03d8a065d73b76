"""Hierarchical attention: words make sentences, sentences a document."""

import keras
from keras import layers, ops

from kseq.layers import (
    Dropout,
    RecurrentPooling,
    SentenceDropout,
    SentenceEncoder,
)
from kseq.models.exact_model import ExactModel
from kseq.models.language_model import LanguageModel
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class HierarchicalAttention(ExactModel):
    """A classifier of documents that reads words, and then sentences.

        sentence = attention over the words of [forward RNN; backward RNN]
        document = attention over the sentences of the same, one level up
        logits = W document + b

    Args:
        vocab_size: int.
        num_classes: int, C.
        embedding_dim: int.
        units: int, of each direction, on both levels.
        attention_units: int, size of the learned queries.
        dropout: float, on embeddings, sentences and documents.
        word_dropout: float, on whole words.
        sentence_dropout: float, on whole sentences.
        groups: int, see `SentenceEncoder`.
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
        vocab_size,
        num_classes,
        *,
        embedding_dim,
        units,
        attention_units,
        dropout=0.0,
        word_dropout=0.0,
        sentence_dropout=0.0,
        groups=4,
        dtype=None,
        name="hierarchical_attention",
        **kwargs,
    ):
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
            piece_dropout=word_dropout,
            groups=groups,
            dtype=policy,
            name="sentence_encoder",
        )
        self.document_encoder = RecurrentPooling(
            units,
            attention_units,
            dtype=policy,
            name="document_encoder",
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.classes = layers.Dense(num_classes, dtype=policy, name="classes")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Config
        self.vocab_size = vocab_size
        self.num_classes = num_classes
        self.embedding_dim = embedding_dim
        self.units = units
        self.attention_units = attention_units
        self.dropout = dropout
        self.word_dropout = word_dropout
        self.sentence_dropout = sentence_dropout
        self.groups = groups

        # Graph
        source_ids = keras.Input((None, None), dtype="int32", name="source_ids")
        super().__init__(
            inputs={"source_ids": source_ids},
            outputs=self.explain(source_ids)["logits"],
            dtype=policy,
            name=name,
            **kwargs,
        )

    @property
    def embedding(self):
        """The `PieceEmbedding`, as the other classifiers name theirs."""
        return self.sentence_encoder.embedding

    def language_model(self):
        """A `LanguageModel` that teaches the embedding and the RNN of words."""
        recurrent = self.sentence_encoder.pooling.recurrent
        return LanguageModel(self.embedding, recurrent, dtype=self.dtype_policy)

    def explain(self, source_ids):
        """The logits, and what they rest on.

        Args:
            source_ids: (B, L, W) int.

        Returns:
            A dict: `logits` (B, C) float32; `sentence_weights` (B, L) and
            `word_weights` (B, L, W) float32, which sum to 1 over the
            sentences of a document and over the words of a sentence.
        """
        source_ids = self.sentence_dropout_layer(source_ids)
        sentence_mask = ops.any(padding_mask(source_ids), axis=-1)
        sentences, word_weights = self.sentence_encoder(
            source_ids, return_weights=True
        )
        document, sentence_weights = self.document_encoder(
            self.dropout_layer(sentences), sentence_mask, return_weights=True
        )
        logits = self.classes(self.dropout_layer(document))
        return {
            "logits": self.logits(logits),
            "sentence_weights": ops.cast(sentence_weights, "float32"),
            "word_weights": ops.cast(word_weights, "float32"),
        }

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
            "groups",
            "name",
        )
        config = {name: getattr(self, name) for name in names}
        return {**config, "dtype": self.dtype_policy.name}
