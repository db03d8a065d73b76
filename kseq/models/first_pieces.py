"""From the pieces of a sentence back to its words."""

from keras import ops

from kseq.ops import padding_mask


def first_pieces(states, source_ids):
    """The state of the first piece of each word.

    Args:
        states: (B, T, D) float, of the pieces of all words in one sequence,
            see `JoinSentences`.
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
