"""Training, validation and test documents."""

import functools
import hashlib
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kseq.data.documents.dispatch_reports import SIZES, dispatch_reports
from kseq.data.documents.document_preprocessor import DocumentPreprocessor
from kseq.data.documents.documents import (
    DEFAULT_COLUMNS,
    Documents,
    document_problems,
    swapped,
    usable_rows,
)
from kseq.data.documents.prepared_documents import (
    PreparedDocuments,
    open_prepared_documents,
)
from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_prepared,
    refuse_unknown,
    refuse_without_train,
    single_labels,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import (
    RowReader,
    Rows,
    RowSplit,
    read_and_split,
    split_rows,
)
from kseq.data.files.labelled_batches import class_numbers
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import escaped_line, progress

_MOST_HELD_OUT = 2_500
_MOST_UNCHECKED = 20  # documents that may all have different labels


class DocumentCorpus(NamedTuple):
    """The data that a classifier trains on and is evaluated on, in memory.

    Args:
        train: Documents.
        validation: Documents.
        test: Documents.
        labels: those of `train`, sorted; as numbers if all are integers.
        facts: lines of text: the numbers of documents.
        problems: lines of text: what is wrong with some of them.
        tokenizer: of the built-in corpus, see `prepare_documents`; otherwise
            None.
    """

    train: Documents
    validation: Documents
    test: Documents
    labels: tuple[str, ...]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None

    @property
    def in_lines(self) -> bool:
        """Whether each line of a text is a sentence."""
        return self.train.in_lines

    @property
    def train_labels(self) -> list[str]:
        """The labels of `train`, for `document_batches`."""
        return self.train.labels

    def lines(self) -> Iterator[str]:
        """The lines of training, to train a tokenizer on."""
        return self.train.lines()

    def tokenized(self, preprocessor: DocumentPreprocessor) -> RaggedArray:
        """The ids of training, (N, L, W)."""
        ids = preprocessor.tokenize_all(self.train.texts)
        return RaggedArray.of(ids)

    describe = facts_and_problems


def read_document_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: tuple[str, ...] = DEFAULT_COLUMNS,
    *,
    seed: int = 1,
    log: bool = True,
) -> DocumentCorpus | PreparedDocuments:
    r"""Reads and checks a user's documents, or makes the built-in reports.

    All documents are held in memory. Without a validation file a tenth of
    each label's documents, drawn by `seed`, is held out of training, or less
    if that is more than 2,500 in all. Of a label with two different texts,
    one is held out. Documents with the same text stay together, and in
    training if their labels differ. With files, `test` is `validation`.

    Args:
        train: path of the documents, see `read_documents`, or a folder of
            `prepare_documents`, whose seed counts; None for the built-in
            ones, see `dispatch_reports`.
        validation: the same, or None.
        columns: see `read_documents`, of both files.
        seed: of the documents held out.
        log: whether to log the facts, and the problems as warnings.

    Raises:
        DataError: a file cannot be used, or the two do not go together.

    Example:
    >>> import pathlib
    >>> file = pathlib.Path("reviews.tsv")
    >>> _ = file.write_text("5\tSo good.\n5\tSoft beds.\n1\tNo!\n1\tDirt.\n")
    >>> corpus = read_document_corpus(file)
    >>> corpus.labels
    ('1', '5')
    >>> sorted(corpus.train.labels), sorted(corpus.validation.labels)
    (['1', '5'], ['1', '5'])
    """
    given = {
        "validation": validation,
        "columns": tuple(columns) != DEFAULT_COLUMNS,
    }
    if train is None:
        refuse_without_train(**given)
        splits = {split: dispatch_reports(split) for split in SIZES}
        labels = sorted_labels(splits["train"].labels)
        return DocumentCorpus(**splits, labels=labels)

    if is_prepared(train):
        refuse_prepared(**given)
        return logged(open_prepared_documents(train), log)
    *splits, rows, split = read_and_split(
        document_reader(columns, seed), train, validation
    )
    documents, held_out = (Documents.of(each, rows.in_lines) for each in splits)
    corpus = DocumentCorpus(
        *(documents, held_out, held_out),
        sorted_labels(rows.labels),
        split.facts,
        split.problems,
    )
    return logged(corpus, log)


def document_reader(columns: tuple[str, ...], seed: int) -> RowReader:
    """Reads rows of a label and a text."""
    return RowReader(
        functools.partial(_read, columns=columns),
        functools.partial(_split, seed=seed),
        functools.partial(_check_labels, columns=columns),
    )


def _read(path, add, columns) -> Rows:
    counts, labels, names, digests = Counter(), [], {}, bytearray()
    with progress(f"Reading {escaped_line(path)}"):
        for row in usable_rows(path, columns, counts):
            add((row.label, row.text))
            labels.append(names.setdefault(row.label, row.label))
            text = row.text.strip().encode()
            digests += hashlib.blake2b(text, digest_size=16).digest()
    # No byte is NUL: NumPy ignores those at the end of bytes.
    hashes = (np.frombuffer(digests, np.uint8) | 1).view("S16")
    problems = document_problems(path, counts)
    single = [name for name, count in Counter(labels).items() if count == 1]
    return Rows(
        *(path, hashes, problems),
        labels=labels,
        single=sorted_labels(single),
        in_lines=row.in_lines,
    )


def _split(rows, validation, seed) -> RowSplit:
    if validation is not None:
        _check_agreement(rows, validation)
    groups, labels = _groups(rows.hashes), sorted_labels(rows.labels)

    def choose():
        held_out = _held_out(rows.labels, groups, seed)
        if not len(held_out):
            raise DataError(
                f"{rows.path}: no document can be held out: give a file for "
                "validation, or two different texts of a label."
            )
        return held_out

    split = split_rows(rows, validation, "document", choose=choose)
    repeats = _repeats(rows.labels, groups)
    return split._replace(
        facts=(*split.facts, f"Labels: {len(labels)}", *repeats),
        problems=(*split.problems, *single_labels(rows, "labels")),
    )


def sorted_labels(names: list[str]) -> tuple[str, ...]:
    """The different labels, as numbers if all are integers."""
    labels = sorted(set(names))
    try:
        return tuple(sorted(labels, key=int))
    except ValueError:
        return tuple(labels)


def _groups(hashes) -> np.ndarray:
    """(N,) int: the number of the first document with the same text."""
    _, first, places = np.unique(hashes, return_index=True, return_inverse=True)
    return first[places]


def _check_labels(rows, documents, columns):
    """Raises DataError if the labels are no labels."""
    labels, count = sorted_labels(rows.labels), len(rows.labels)
    if len(labels) < 2:
        raise DataError(
            f"{rows.path}: expected at least two labels; found only "
            f"{labels[0]!r}."
        )
    if count > _MOST_UNCHECKED and 2 * len(labels) > count:
        raise DataError(
            f"{rows.path}: column {columns[0]!r} has {len(labels)} different "
            f"values in {count} documents, too many for a label. "
            f"{swapped(columns)}"
        )


def _repeats(labels, groups) -> list[str]:
    repeated = np.flatnonzero(groups != np.arange(len(groups))).tolist()
    if not repeated:
        return []
    differ = sum(labels[n] != labels[groups[n]] for n in repeated)
    return [
        f"Duplicate documents: {len(repeated)} of {len(labels)}, "
        f"{differ} of them with a different label"
    ]


def _check_agreement(rows, validation):
    if validation.in_lines != rows.in_lines:
        forms = {False: "texts", True: "sentences"}
        raise DataError(
            "train and validation must have the same form: "
            f"{rows.path} has {forms[rows.in_lines]}, "
            f"{validation.path} has {forms[validation.in_lines]}."
        )
    refuse_unknown("labels", rows, validation)


def _held_out(names, groups, seed) -> np.ndarray:
    """Sorted numbers of the documents that validation gets.

    `names` are their labels, `groups` the numbers of their texts.
    """
    sizes = np.bincount(groups)
    labels = sorted(set(names))
    own = class_numbers(names, labels)
    lowest = np.full(len(sizes), len(labels), np.int32)
    highest = np.zeros(len(sizes), np.int32)
    np.minimum.at(lowest, groups, own)
    np.maximum.at(highest, groups, own)
    is_mixed = lowest != highest  # a text with two labels cannot be evaluated
    stay = set(own[is_mixed[groups]].tolist())  # in training in any case

    counts = np.bincount(own, minlength=len(labels)).tolist()
    tenths = [max(1, round(count / 10)) for count in counts]
    total = max(_MOST_HELD_OUT, sum(tenths))
    pure = np.flatnonzero(~is_mixed)
    pure = pure[np.argsort(lowest[pure], kind="stable")]
    ends = np.searchsorted(lowest[pure], np.arange(1, len(labels)))
    draw = random.Random(seed)
    chosen = [np.zeros(0, np.int64)]
    for label, texts in enumerate(np.split(pure, ends)):
        draw.shuffle(texts)
        texts = texts[np.argsort(sizes[texts], kind="stable")]
        texts = texts if label in stay else texts[:-1]  # large ones last
        most = tenths[label] * _MOST_HELD_OUT // total
        fitting = np.count_nonzero(np.cumsum(sizes[texts]) <= most)
        chosen.append(texts[: max(fitting, 1)])
    return np.flatnonzero(np.isin(groups, np.concatenate(chosen)))
