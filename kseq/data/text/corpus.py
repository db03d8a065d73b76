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
    refuse_prepared,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import overlap
from kseq.data.files.prepared_folder import prepared_folder
from kseq.data.files.source_hashes import choose_held_out, source_hashes
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
    held-out source is in training. Pairs with a blank side or a very long line
    are left out everywhere. With files, `test` is `validation`; `kseq evaluate`
    scores a trained model on other files.

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
        log: whether to log the facts, and the problems as warnings.

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
    return logged(_corpus(texts, others, weights), log)


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


def _examined(texts):
    for text in texts:
        with progress(f"Reading {escaped_line(text)}"):
            yield text.examine()


def _corpus(texts, others, weights) -> Corpus:
    """The corpus of texts to train on, and of others for validation, or ()."""
    examined, judged = list(_examined(texts)), list(_examined(others))
    sources = np.concatenate([text.sources for text in examined])
    pairs = np.concatenate([text.pairs for text in examined])
    problems = text_problems(texts, [found.report for found in examined])
    if others:
        parts = tuple(text.pairs() for text in texts)
        kept = [len(text.pairs) for text in examined]
        validation = [text.pairs() for text in others]
        counts = [len(text.pairs) for text in judged]
        own = np.concatenate([text.sources for text in judged])
        examples = len(np.unique(own))
        problems += text_problems(others, [found.report for found in judged])
        problems += overlap(np.isin(own, sources), "source")
    else:
        held_out = choose_held_out([sources], len(sources))

        def is_out(sources):
            return np.isin(source_hashes(sources), held_out)

        parts = tuple(
            text.pairs(lambda sources: ~is_out(sources)) for text in texts
        )
        kept = [
            np.count_nonzero(~np.isin(text.sources, held_out))
            for text in examined
        ]
        refuse_split(texts, held_out, len(pairs), kept)
        validation = [text.pairs(is_out) for text in texts]
        counts, examples = [len(pairs) - sum(kept)], len(held_out)
    validation = _concatenated(validation)
    return Corpus(
        _concatenated(parts),
        validation,
        test=validation,
        parts=parts,
        weights=weights,
        facts=pair_facts(
            *(texts, kept, others, counts, examples),
            unique=len(np.unique(pairs)),
            total=len(pairs),
        ),
        problems=tuple(problems),
        of_tables=are_tables(others or texts),
    )


def refuse_split(texts, chosen, pairs: int, kept: Sequence[int]):
    """Raises DataError if too few pairs are held out, or stay in training.

    `chosen` are the hashes of the sources that are held out, and `kept` the
    numbers of pairs of each text that stay.
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


def pair_facts(
    texts, kept, others, counts, examples: int, *, unique: int, total: int
) -> tuple[str, ...]:
    """Lines about the numbers of pairs.

    Args:
        texts: of training.
        kept: number of pairs of each that are trained on.
        others: those of validation, or ().
        counts: number of pairs of each; or of those that are held out.
        examples: number of different sources of validation.
        unique: number of different pairs of all texts of training.
        total: number of their pairs.
    """
    chosen = others or ["held out of training by source"]
    facts = [
        f"{split} pairs: {count} ({name})"
        for split, names, sizes in (
            ("Training", texts, kept),
            ("Validation", chosen, counts),
        )
        for name, count in zip(names, sizes, strict=True)
    ]
    if examples != sum(counts) and are_tables(others or texts):
        references = "with all targets of a source as references"
        facts.append(f"Validation examples: {examples}, {references}")
    if unique != total:
        facts.append(f"Duplicate pairs: {total - unique} of {total}")
    return tuple(facts)


def _concatenated(parts) -> tf.data.Dataset:
    return functools.reduce(lambda one, other: one.concatenate(other), parts)


def are_tables(texts) -> bool:
    """Whether no text is two files."""
    return all(text.target is None for text in texts)


def text_problems(texts, reports) -> list[str]:
    """Notes on texts, and what is wrong with them."""
    return [
        line
        for text, report in zip(texts, reports, strict=True)
        for line in text.notes() + report.problems(text)
    ]
