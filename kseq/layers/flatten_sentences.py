"""Documents of sentences as one sequence of pieces."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.layers.xla import is_compiled_by_xla
from kseq.ops import packing_order, padding_mask


@keras.saving.register_keras_serializable(package="kseq", name="JoinSentences")
class FlattenSentences(keras.layers.Layer):
    """Concatenates the pieces of all sentences of a document.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        ids: (B, L, W) int, pieces of sentences, padded with PAD.

    Returns:
        (B, T) int, padded with PAD, where T is the number of pieces in the
        longest document, or 1; with XLA, whose sizes are known when it
        compiles, T = L W.

    Example:
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> FlattenSentences()(ids).numpy()
        array([[4, 5, 6, 7],
               [8, 9, 0, 0]])
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # XLA can, but it computes with all padding of the sentences.
        self.supports_jit = False

    def call(self, ids):
        batch, sentences, pieces = ops.shape(ids)
        ids = ops.reshape(ids, (batch, sentences * pieces))
        real = padding_mask(ids)
        if is_compiled_by_xla():  # T would depend on values
            return ops.take_along_axis(ids, packing_order(real), axis=1)
        lengths = ops.sum(ops.cast(real, "int32"), axis=-1)
        longest = ops.max(lengths, initial=1)
        return ops.take_along_axis(
            ids, packing_order(real)[:, :longest], axis=1
        )

    def unflatten_weights(self, weights, ids):
        """Distributes the weights of a joined sequence to its sentences.

        Args:
            weights: (B, T) float, of the pieces that `call` returned.
            ids: (B, L, W) int, the inputs of that call.

        Returns:
            A tuple: sentence weights, (B, L), the sums over their pieces, and
            word weights, (B, L, W), which sum to 1 over the pieces of a
            sentence, or to 0 if it has none.
        """
        batch, sentences, pieces = ops.shape(ids)
        count = sentences * pieces
        rest = ops.zeros((batch, count - ops.shape(weights)[1]), weights.dtype)
        weights = ops.concatenate([weights, rest], axis=1)
        real = padding_mask(ops.reshape(ids, (batch, count)))
        inverse = ops.argsort(packing_order(real))
        weights = ops.take_along_axis(weights, inverse, axis=1)
        weights = ops.reshape(weights, (batch, sentences, pieces))
        sentence_weights = ops.sum(weights, axis=-1)
        word_weights = ops.divide_no_nan(weights, sentence_weights[:, :, None])
        return sentence_weights, word_weights

    def explain(self, logits, weights, ids):
        """The result of `explain` of a classifier that reads joined sentences.

        Args:
            logits: (B, C) float.
            weights: see `unflatten_weights`.
            ids: see there.

        Returns:
            A dict, see `kseq.models.HierarchicalAttention.explain`.
        """
        of_sentences, of_words = self.unflatten_weights(weights, ids)
        return {
            "logits": logits,
            "sentence_weights": of_sentences,
            "word_weights": of_words,
        }

    def compute_output_shape(self, ids_shape):
        return (ids_shape[0], None)

    def compute_output_spec(self, ids):
        shape = self.compute_output_shape(ids.shape)
        return keras.KerasTensor(shape, dtype=ids.dtype)

    def get_config(self) -> dict:
        return config_of(self, FlattenSentences)


def first_piece_states(states, source_ids):
    """The state of the first piece of each word.

    Args:
        states: (B, T, D) float, of the pieces of all words in one sequence,
            see `FlattenSentences`.
        source_ids: (B, W, P) int, the pieces of each word; the real words are
            first, and have a piece.

    Returns:
        (B, W, D); at padding, that of the first word.
    """
    real = ops.cast(padding_mask(source_ids), "int32")
    counts = ops.sum(real, axis=-1)  # (B, W)
    starts = ops.cumsum(counts, axis=-1) - counts
    starts = ops.where(counts > 0, starts, 0)
    return ops.take_along_axis(states, starts[:, :, None], axis=1)
