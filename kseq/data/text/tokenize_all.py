"""Tokenizes all texts of a data set."""

from collections.abc import Callable

import tensorflow as tf

from kseq.data.files.dataset_options import IN_PARALLEL, disable_autotuning
from kseq.terminal import progress

_BLOCK = 256  # texts that are tokenized together


def tokenize_all(
    tokenize: Callable, texts: list[str], unit: str
) -> tf.RaggedTensor:
    """The ids of all texts of a data set, on all cores.

    Texts and ids are held in memory.

    Args:
        tokenize: function of strings (B,), returns ragged ids (B, ...).
        texts: N of them.
        unit: what a text is, for the progress.

    Returns:
        (N, ...) int32, ragged.
    """
    blocks = disable_autotuning(
        tf.data.Dataset.from_tensor_slices(texts).batch(_BLOCK)
    )
    ids = []
    with progress("Tokenizing", len(texts), unit) as advance:
        for block in blocks.map(tokenize, **IN_PARALLEL):
            ids.append(block)
            advance(int(block.nrows()))
    return tf.concat(ids, axis=0)
