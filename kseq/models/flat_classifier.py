"""What classifiers share that read a document as one row of words."""

import keras
from keras import layers, ops

from kseq.layers import Dropout, JoinSentences, SentenceDropout
from kseq.models.exact_model import ExactModel
from kseq.ops import padding_mask


class FlatClassifier(ExactModel):
    """A classifier of documents that attends to all their words at once.

    A subclass makes its layers, then calls `__init__`, and has a method
    `_read(ids, mask)` from words in a row, (B, T), to their vector (B, D)
    and their weights in it (B, T).

    Args:
        num_classes: int, C.
        dropout: float, on the vector.
        sentence_dropout: float, on whole sentences.
        dtype: dtype policy.
        **kwargs: see `keras.Model`.
    """

    def __init__(
        self, num_classes, *, dropout, sentence_dropout, dtype, **kwargs
    ):
        self.num_classes = num_classes
        self.dropout = dropout
        self.sentence_dropout = sentence_dropout
        self.sentence_dropout_layer = SentenceDropout(
            sentence_dropout, dtype=dtype, name="sentence_dropout"
        )
        self.join = JoinSentences(dtype=dtype, name="join")
        self.dropout_layer = Dropout(dropout, dtype=dtype, name="dropout")
        self.classes = layers.Dense(num_classes, dtype=dtype, name="classes")
        self.logits = layers.Identity(dtype="float32", name="logits")

        source_ids = keras.Input((None, None), dtype="int32", name="source_ids")
        logits, _ = self._classify(source_ids)
        super().__init__(
            inputs={"source_ids": source_ids},
            outputs=logits,
            dtype=dtype,
            **kwargs,
        )

    def _classify(self, source_ids):
        ids = self.join(self.sentence_dropout_layer(source_ids))  # (B, T)
        document, weights = self._read(ids, padding_mask(ids))
        logits = self.classes(self.dropout_layer(document))
        return self.logits(logits), ops.cast(weights, "float32")

    def explain(self, source_ids):
        """The logits, and what they rest on.

        Args:
            source_ids: (B, L, W) int.

        Returns:
            A dict as of `HierarchicalAttention.explain`. The weight of a
            sentence is the sum over its words.
        """
        logits, weights = self._classify(source_ids)
        of_sentences, of_words = self.join.share_weights(weights, source_ids)
        return {
            "logits": logits,
            "sentence_weights": of_sentences,
            "word_weights": of_words,
        }
