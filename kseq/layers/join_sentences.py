"""Documents of sentences as one sequence of words."""

import keras
from keras import ops

from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class JoinSentences(keras.layers.Layer):
    """The words of all sentences of a document, one after the other.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        ids: (B, L, W) int, words of sentences, padded with PAD.

    Returns:
        (B, T) int, padded with PAD, where T is the number of words in the
        longest document, or 1.

    Example:
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> JoinSentences()(ids).numpy()
        array([[4, 5, 6, 7],
               [8, 9, 0, 0]])
    """

    def call(self, ids):
        batch, sentences, words = ops.shape(ids)
        ids = ops.reshape(ids, (batch, sentences * words))
        real = padding_mask(ids)
        lengths = ops.sum(ops.cast(real, "int32"), axis=-1)
        longest = ops.max(lengths, initial=1)
        return ops.take_along_axis(ids, _real_first(real)[:, :longest], axis=1)

    def share_weights(self, weights, ids):
        """Gives weights of words in a row back to their sentences.

        Args:
            weights: (B, T) float, of what `call` returned for `ids`.
            ids: (B, L, W) int.

        Returns:
            A tuple: weights of the sentences, (B, L), each the sum over its
            words, and of the words within each sentence, (B, L, W), which sum
            to 1, or to 0 where it has none.
        """
        batch, sentences, words = ops.shape(ids)
        count = sentences * words
        rest = ops.zeros((batch, count - ops.shape(weights)[1]), weights.dtype)
        weights = ops.concatenate([weights, rest], axis=1)
        real = padding_mask(ops.reshape(ids, (batch, count)))
        places = ops.argsort(_real_first(real))
        weights = ops.take_along_axis(weights, places, axis=1)
        weights = ops.reshape(weights, (batch, sentences, words))
        of_sentences = ops.sum(weights, axis=-1)
        of_words = ops.divide_no_nan(weights, of_sentences[:, :, None])
        return of_sentences, of_words

    def compute_output_shape(self, ids_shape):
        return (ids_shape[0], None)

    def compute_output_spec(self, ids):
        shape = self.compute_output_shape(ids.shape)
        return keras.KerasTensor(shape, dtype=ids.dtype)


def _real_first(real):
    """The order that moves padding behind what is real. (B, T) bool -> int."""
    places = ops.arange(ops.shape(real)[1], dtype="int32")
    is_padding = ops.cast(ops.logical_not(real), "int32")
    return ops.argsort(places + ops.shape(real)[1] * is_padding)
