"""The length of the longest target in training."""

import tensorflow as tf

from kseq.data.files.dataset_options import IN_PARALLEL, disable_autotuning
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import progress

_BLOCK = 1024  # pairs that are tokenized together


def longest_target(
    pairs: tf.data.Dataset, tokenizer: Tokenizer, max_length: int
) -> int:
    """Tokens of the longest target in training, END included.

    As the maximum length of an answer it truncates none that occurs in
    training, and a low limit lets a beam search stop earlier, because it knows
    sooner that no better answer is possible.

    Args:
        pairs: scalar strings (source, target), each once.
        tokenizer: of the targets.
        max_length: targets with more tokens, which training leaves out, do not
            count.

    Returns:
        At most `max_length`; 0 if no target counts.

    Example:
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> tokenizer = Tokenizer.train(lines, 270, "bpe")
    >>> pairs = tf.data.Dataset.from_tensor_slices((lines, lines))
    >>> longest_target(pairs, tokenizer, max_length=100)
    12
    """

    def longest(_, targets):
        ids, _ = tokenizer.tokenize_with_end(targets)
        lengths = ids.row_lengths()
        return tf.reduce_max(tf.where(lengths <= max_length, lengths, 0))

    blocks = disable_autotuning(pairs.batch(_BLOCK))
    blocks = blocks.map(longest, **IN_PARALLEL)
    found = 0
    with progress("Measuring the targets"):
        for length in blocks.as_numpy_iterator():
            found = max(found, int(length))
            if found == max_length:  # soon, in a large corpus
                break
    return found
