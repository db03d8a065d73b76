"""Training, validation and test pairs."""

import dataclasses
import functools
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import overlap
from kseq.data.files.prepared_folder import (
    prepared_folder,
    refuse_prepared,
)
from kseq.data.files.source_hashes import are_among, choose_held_out
from kseq.data.text.dates import SIZES, dates
from kseq.data.text.parallel_text import texts_of_splits
from kseq.data.text.prepared_pairs import PreparedPairs, open_prepared
from kseq.data.text.references import split_examples
from kseq.terminal import escaped_line, progress


class Corpus(NamedTuple):
    """The data that a recipe trains on, and is evaluated on.

    Each is a `tf.data.Dataset` of scalar strings (source, target).

    Args:
        train: the training pairs, each once.
        validation: the pairs of validation.
        test: those of the test.
        parts: the training pairs of each corpus.
        weights: of the parts, 1 in all, if they are drawn by weight.
        facts: lines of text: the numbers of pairs.
        problems: lines of text: what is wrong with some of them.
        of_tables: whether validation and test come from tables alone, whose
            rows with the same source are one example with several references;
            lines of two files are an example each.
    """

    train: tf.data.Dataset
    validation: tf.data.Dataset
    test: tf.data.Dataset
    parts: tuple[tf.data.Dataset, ...] = ()
    weights: tuple[float, ...] = ()
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    of_tables: bool = False

    def lines(self, sides: Sequence[str] = ("source", "target")):
        """Sources and targets of the training pairs, or one side; bytes."""
        # One by one, pairs leave a data set a hundred times more slowly.
        for block in self.train.batch(1024).as_numpy_iterator():
            for side, texts in zip(("source", "target"), block, strict=True):
                if side in sides:
                    yield from texts

    examples = split_examples
    describe = facts_and_problems


def read_corpus(
    train: Sequence[str | os.PathLike] | None = None,
    validation: Sequence[str | os.PathLike] | None = None,
    columns: Sequence[str] = (),
    weights: Sequence[float] = (),
    *,
    log: bool = True,
) -> Corpus | PreparedPairs:
    r"""Reads and checks a user's files, or makes the built-in dates.

    Without validation files about a tenth of the pairs, and about 1,000 at
    most, is held out of training: all pairs of some sources, so that no
    held-out source is in training. Pairs with a blank side or a very long
    line are left out everywhere. With files, `test` is `validation`;
    `kseq evaluate` scores a trained model on any other.

    Args:
        train: paths. One with the name of a table (.tsv, .csv, .jsonl, .json,
            which may be compressed) has source and target; others come in
            pairs, a source and its target. A single path of another name is a
            TSV, or the folder of `prepare_pairs`. None for the dates.
        validation: the same, or None.
        columns: of source and target in all tables, see `ParallelText`; a third
            one is checked, see `prepare_pairs`.
        weights: one for each corpus of `train`: how often it is drawn. By
            default each pair is drawn once an epoch.
        log: whether the facts are logged, what is wrong as a warning.

    Returns:
        `Corpus`; of a folder, `PreparedPairs`.

    Raises:
        DataError: a file cannot be used.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.csv").write_text("en,de\nGo.,Los.\nHi.,Hallo.\n")
    >>> corpus = read_corpus(["a.csv"], columns=("de", "en"))
    >>> list(corpus.validation.as_numpy_iterator())
    [(b'Los.', b'Go.')]
    >>> print(*corpus.describe(), sep="\n")
    Training pairs: 1 (a.csv)
    Validation pairs: 1 (held out of training by source)
    """
    if train is None:
        refuse_without_train(
            validation=validation, columns=columns, weights=weights
        )
        splits = {
            split: tf.data.Dataset.from_tensor_slices(dates(split))
            for split in SIZES
        }
        return Corpus(**splits, parts=(splits["train"],))

    if given := prepared_folder(train):
        refuse_prepared(validation=validation, columns=columns)
        prepared = open_prepared(given)
        names = [given] * len(prepared.counts)
        weights = checked_weights(weights, names)
        return logged(dataclasses.replace(prepared, weights=weights), log)
    texts, others = texts_of_splits(train, validation, columns)
    weights = checked_weights(weights, texts)
    for text in texts + others:
        text.check_files()

    examined = [_examined(text) for text in texts]
    if others:
        corpus = _with_validation(texts, examined, others)
    else:
        corpus = _with_held_out(texts, examined)
    corpus = corpus._replace(weights=weights)
    return logged(corpus, log)


def checked_weights(weights, texts) -> tuple[float, ...]:
    """Weights of texts, 1 in all; () if none are given.

    Raises:
        DataError: there is not one above 0 for each text.
    """
    weights = tuple(weights)
    if not weights:
        return ()
    if len(weights) != len(texts) or not all(
        0 < weight < math.inf for weight in weights
    ):
        raise DataError(
            "weights needs one number above 0 for each corpus of train. "
            f"Received: {', '.join(map(str, weights))} for "
            f"{', '.join(map(str, texts))}"
        )
    largest = max(weights)
    shares = [weight / largest for weight in weights]
    return tuple(share / sum(shares) for share in shares)


def _examined(text):
    with progress(f"Reading {escaped_line(text)}"):
        return text.examine()


def _with_validation(texts, examined, others) -> Corpus:
    judged = [_examined(text) for text in others]
    trained = np.concatenate([text.sources for text in examined])
    sources = np.concatenate([text.sources for text in judged])
    problems = [
        *_problems(texts, examined),
        *_problems(others, judged),
        *overlap(np.isin(sources, trained), "source"),
    ]
    validation = _concatenated([text.pairs() for text in others])
    parts = tuple(text.pairs() for text in texts)
    return Corpus(
        _concatenated(parts),
        validation,
        test=validation,
        parts=parts,
        facts=(
            *sizes("Training", texts, [len(text.pairs) for text in examined]),
            *sizes("Validation", others, [len(text.pairs) for text in judged]),
            *referenced_examples(len(np.unique(sources)), len(sources), others),
            *_repeats(examined),
        ),
        problems=tuple(problems),
        of_tables=are_tables(others),
    )


def _with_held_out(texts, examined) -> Corpus:
    sources = np.concatenate([text.sources for text in examined])
    chosen = choose_held_out(sources)
    stay = [~np.isin(text.sources, chosen) for text in examined]
    kept = [int(np.count_nonzero(stays)) for stays in stay]
    refuse_split(texts, chosen, len(sources), kept)

    is_held_out = functools.partial(are_among, hashes=chosen)
    parts = tuple(
        text.pairs(lambda sources: ~is_held_out(sources)) for text in texts
    )
    validation = _concatenated([text.pairs(is_held_out) for text in texts])
    held_out = len(sources) - sum(kept)
    return Corpus(
        _concatenated(parts),
        validation,
        test=validation,
        parts=parts,
        facts=(
            *held_out_facts(texts, kept, len(chosen), held_out),
            *_repeats(examined),
        ),
        problems=tuple(_problems(texts, examined)),
        of_tables=are_tables(texts),
    )


def refuse_split(texts, chosen, pairs: int, kept: Sequence[int]):
    """Raises DataError if too few pairs are held out, or stay in training.

    Args:
        texts: of training.
        chosen: hashes of the sources that are held out.
        pairs: number of all pairs.
        kept: number of pairs of each text that stay.
    """
    if not len(chosen):
        raise DataError(
            f"{', '.join(map(str, texts))}: no pair can be held out, because "
            f"there is only one source (number of pairs: {pairs}). Give "
            "files for validation, or pairs with two different sources."
        )
    for text, count in zip(texts, kept, strict=True):
        if not count:
            raise DataError(
                f"{text}: all of its pairs would be held out of training. "
                "Give files for validation, or more pairs."
            )


def held_out_facts(texts, kept, num_sources, num_pairs) -> list[str]:
    """Lines about the numbers of pairs that stay, and are held out."""
    return [
        *sizes("Training", texts, kept),
        f"Validation pairs: {num_pairs} (held out of training by source)",
        *referenced_examples(num_sources, num_pairs, texts),
    ]


def _concatenated(parts) -> tf.data.Dataset:
    return functools.reduce(lambda one, other: one.concatenate(other), parts)


def sizes(split, texts, counts) -> list[str]:
    """A line about the number of pairs of each text."""
    return [
        f"{split} pairs: {count} ({text})"
        for text, count in zip(texts, counts, strict=True)
    ]


def are_tables(texts) -> bool:
    """Whether no text is two files."""
    return all(text.target is None for text in texts)


def referenced_examples(count, pairs, texts) -> list[str]:
    """A line about examples with several references, if there are any."""
    if count == pairs or not are_tables(texts):
        return []
    references = "with all targets of a source as references"
    return [f"Validation examples: {count}, {references}"]


def repeats(unique: int, pairs: int) -> list[str]:
    """A line about duplicate pairs, if there are any."""
    if unique == pairs:
        return []
    return [f"Duplicate pairs: {pairs - unique} of {pairs}"]


def _repeats(examined) -> list[str]:
    pairs = np.concatenate([text.pairs for text in examined])
    return repeats(len(np.unique(pairs)), len(pairs))


def _problems(texts, examined) -> list[str]:
    return text_problems(texts, [found.report for found in examined])


def text_problems(texts, reports) -> list[str]:
    """Notes on texts, and what is wrong with them."""
    return [
        line
        for text, report in zip(texts, reports, strict=True)
        for line in text.notes() + report.problems(text)
    ]
