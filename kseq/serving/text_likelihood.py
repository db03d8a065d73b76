"""Likelihood of running text under a language model."""

import tensorflow as tf

from kseq.data import running_ids, running_text_evaluation
from kseq.serving.generator import Generator
from kseq.serving.predict_batches import Progress

_ROWS = 32  # of a batch


class TextLikelihood:
    """The likelihood of documents, each token after those before it.

    Every token is predicted once, from the up to `length` tokens before it,
    with END after each document.

    Args:
        generator: `kseq.serving.Generator` of a language model.
        documents: list of str.
        length: int, tokens of a row.

    Call arguments:
        progress: callable of the number of batches done since its last call;
            or None.

    Returns:
        the sum of -log p over all tokens, float, in nats; and the number of
        tokens.
    """

    def __init__(self, generator: Generator, documents: list[str], length: int):
        ids = running_ids(documents, generator.tokenizer)
        self._model = generator.model
        self._batches = running_text_evaluation(
            ids, batch_size=_ROWS, length=length
        )
        self._losses = tf.function(self._sums, reduce_retracing=True)

    def __len__(self):
        return int(self._batches.cardinality())

    def __call__(self, progress: Progress | None = None) -> tuple[float, int]:
        total, tokens = 0.0, 0
        for batch in self._batches:
            loss, count = self._losses(*batch)
            total, tokens = total + float(loss), tokens + int(count)
            if progress is not None:
                progress(1)
        return total, tokens

    def _sums(self, inputs, labels, weights):
        logits = self._model.loss_outputs(inputs, training=False)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_sum(losses * weights), tf.reduce_sum(weights)
