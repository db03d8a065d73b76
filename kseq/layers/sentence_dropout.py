"""Dropout of whole sentences."""

import keras
from keras import ops

from kseq.control_tokens import PAD
from kseq.layers.dropout import Dropout
from kseq.layers.random_numbers import random_uniform
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class SentenceDropout(Dropout):
    """Removes sentences of documents at random in training.

    The label of a document is usually that of most of its sentences too, so
    each epoch reads different documents. At least one sentence with pieces
    remains.

    Args:
        rate: float in [0, 1], rate at which sentences are removed.
        noise_shape: must be None.
        seed: int, or None for a random seed.
        **kwargs: see `keras.layers.Dropout`.

    Call arguments:
        ids: (B, L, W) int, pieces of sentences, padded with PAD.
        training: bool, whether to remove sentences.

    Returns:
        (B, L, W) int, with PAD in the removed sentences.

    Example:
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> SentenceDropout(1.0)(ids, training=True).numpy().any((1, 2))
        array([ True,  True])
    """

    def call(self, ids, training=False):
        if not training or not self.rate:
            return ids
        has_pieces = ops.any(padding_mask(ids), axis=-1)
        draws = random_uniform(ops.shape(has_pieces), self.seed_generator)
        draws = ops.where(has_pieces, draws, -1.0)
        highest = ops.max(draws, axis=-1, keepdims=True, initial=-1.0)
        kept = draws >= ops.minimum(highest, self.rate)
        return ops.where(kept[..., None], ids, PAD)
