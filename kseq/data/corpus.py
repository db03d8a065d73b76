"""Training, validation and test pairs."""

from typing import NamedTuple

import tensorflow as tf

from kseq.data.data_error import DataError
from kseq.data.parallel_text import ParallelText, count_overlap

_MOST_HELD_OUT = 1000


class Corpus(NamedTuple):
    """What a recipe trains on, and what it is judged by.

    Each is a `tf.data.Dataset` of scalar strings (source, target).
    """

    train: tf.data.Dataset
    validation: tf.data.Dataset
    test: tf.data.Dataset

    def lines(self):
        """Source and target of the training pairs in turn, bytes."""
        for pair in self.train.as_numpy_iterator():
            yield from pair

    def source_lines(self):
        """The sources of the training pairs, bytes."""
        return (source for source, _ in self.train.as_numpy_iterator())

    def target_lines(self):
        """The targets of the training pairs, bytes."""
        return (target for _, target in self.train.as_numpy_iterator())


def read_corpus(train=(), validation=()):
    """Checks and reads a user's files, or makes the built-in dates.

    Without validation files every k-th pair is held out of training, at most
    a thousand. Files give no test set of their own: `test` is `validation`,
    and `kseq evaluate` judges a trained model on any other.

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
        return dates_corpus()

    text = _parallel_text("train", train)
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
