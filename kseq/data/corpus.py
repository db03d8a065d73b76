"""Training, validation and test pairs."""

from typing import NamedTuple

import tensorflow as tf

from kseq.data.built_in.dates import SIZES, dates
from kseq.data.data_error import DataError
from kseq.data.parallel_text import ParallelText, count_overlap
from kseq.progress import progress

_MOST_HELD_OUT = 1000


class Corpus(NamedTuple):
    """What a recipe trains on, and what it is evaluated on.

    Each is a `tf.data.Dataset` of scalar strings (source, target).
    """

    train: tf.data.Dataset
    validation: tf.data.Dataset
    test: tf.data.Dataset

    def lines(self):
        """Sources and targets of the training pairs, bytes."""
        # One by one, pairs leave a data set a hundred times more slowly.
        for sources, targets in self.train.batch(1024).as_numpy_iterator():
            yield from sources
            yield from targets


def read_corpus(train=(), validation=()):
    """Checks and reads a user's files, or makes the built-in dates.

    Without validation files every k-th pair is held out of training, at most
    a thousand. With files, `test` is `validation`; `kseq evaluate` scores a
    trained model on any other.

    Args:
        train: paths of source and target, or of one TSV, see `ParallelText`;
            none for the dates.
        validation: the same, or none.

    Returns:
        Corpus.

    Raises:
        DataError: a file cannot be used.
    """
    if not train:
        return Corpus(
            **{
                split: tf.data.Dataset.from_tensor_slices(dates(split))
                for split in SIZES
            }
        )

    text = _parallel_text("train", train)
    with progress(f"Reading {text}"):
        report = text.check()
    if validation:
        held_out = _parallel_text("validation", validation)
        held_out.check()
        count_overlap(text, held_out)
        return Corpus(text.pairs(), held_out.pairs(), test=held_out.pairs())

    every = max(10, report.pairs // _MOST_HELD_OUT + 1)
    held_out = _numbered(text.pairs(), lambda line: line % every == 0)
    rest = _numbered(text.pairs(), lambda line: line % every > 0)
    return Corpus(rest, held_out, test=held_out)


def _parallel_text(option, paths):
    if len(paths) > 2:
        raise DataError(
            f"{option} takes a source and a target, or one TSV. "
            f"Received: {', '.join(map(str, paths))}"
        )
    return ParallelText(*paths)


def _numbered(pairs, is_wanted):
    return (
        pairs.enumerate()
        .filter(lambda line, pair: is_wanted(line))
        .map(lambda line, pair: pair)
    )
