"""Documents without some of their sentences."""

import keras
from keras import ops

from kseq.control_tokens import PAD
from kseq.layers.dropout import Dropout
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class SentenceDropout(Dropout):
    """Leaves sentences out of documents at random in training.

    A label is true of most of a document as well as of all of it, so every
    epoch reads other documents. One sentence with words always stays.

    Args:
        rate: float in [0, 1], share of the sentences that are left out.
        noise_shape: as in Keras, must be None.
        seed: int, or None for one at random.

    Call arguments:
        ids: (B, L, W) int, words of sentences, padded with PAD.
        training: bool, whether to leave out.

    Returns:
        (B, L, W) int, with PAD for what is left out.

    Example:
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> SentenceDropout(1.0)(ids, training=True).numpy().any((1, 2))
        array([ True,  True])
    """

    def call(self, ids, training=False):
        if not training or not self.rate:
            return ids
        has_words = ops.any(padding_mask(ids), axis=-1)
        draws = keras.random.uniform(
            ops.shape(has_words), dtype="float32", seed=self.seed_generator
        )
        draws = ops.where(has_words, draws, -1.0)
        highest = ops.max(draws, axis=-1, keepdims=True, initial=-1.0)
        kept = draws >= ops.minimum(highest, self.rate)
        return ops.where(kept[..., None], ids, PAD)
