"""Training, validation and test documents."""

import hashlib
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kseq.data.documents.dispatch_reports import SIZES, dispatch_reports
from kseq.data.documents.document_labels import DEFAULT_COLUMNS, swapped
from kseq.data.documents.document_preprocessor import DocumentPreprocessor
from kseq.data.documents.documents import (
    DocumentReport,
    Documents,
    examine_documents,
)
from kseq.data.documents.prepared_documents import (
    PreparedDocuments,
    open_prepared_documents,
)
from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_unknown,
    refuse_without_train,
    some,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import overlap
from kseq.data.files.prepared_folder import is_prepared, refuse_prepared
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.text_files import matching_files
from kseq.data.files.text_folders import is_text_folder
from kseq.data.text.tokenizer import Tokenizer

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
    columns: tuple[str, str] = DEFAULT_COLUMNS,
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
        columns: keys or columns of the label and of the text, in both files.
        seed: of the documents held out.
        log: whether the facts are logged, what is wrong as a warning.

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
    if train is None:
        refuse_without_train(validation=validation)
        splits = {split: dispatch_reports(split) for split in SIZES}
        labels = _labels(splits["train"].labels)
        return DocumentCorpus(**splits, labels=labels)

    if is_prepared(train):
        refuse_prepared(validation=validation)
        return logged(open_prepared_documents(train), log)
    for path in (train, validation):
        if path is not None and not is_text_folder(path):
            matching_files(path)
    documents, report = examine_documents(train, columns)
    rows = _rows(train, documents, report)
    check_labels(rows, columns)
    if validation is None:
        split = hold_out_documents(rows, seed)
        held_out = _taken(documents, split.held_out)
        rest = np.setdiff1d(np.arange(len(rows.labels)), split.held_out)
        documents = _taken(documents, rest)
    else:
        held_out, report = examine_documents(validation, columns)
        split = compare_documents(rows, _rows(validation, held_out, report))
    corpus = DocumentCorpus(
        documents, held_out, held_out, split.labels, split.facts, split.problems
    )
    return logged(corpus, log)


class DocumentRows(NamedTuple):
    """What a split of documents depends on, without their texts.

    Args:
        path: of their file.
        labels: list of str.
        keys: (N,), see `document_keys`.
        in_lines: see `Documents`.
        report: DocumentReport.
    """

    path: str | os.PathLike
    labels: list[str]
    keys: np.ndarray
    in_lines: bool
    report: DocumentReport


class DocumentSplit(NamedTuple):
    """Which documents are held out, and what is said about them.

    Args:
        held_out: (H,) int, their numbers, sorted.
        labels: see `DocumentCorpus`.
        facts: see `DocumentCorpus`.
        problems: see `DocumentCorpus`.
    """

    held_out: np.ndarray
    labels: tuple[str, ...]
    facts: tuple[str, ...]
    problems: tuple[str, ...]


def document_keys(texts: Iterable[str]) -> np.ndarray:
    """(N,) 16 bytes each, the same for texts that count as the same."""
    digests = bytearray()
    for text in texts:
        digests += hashlib.blake2b(
            text.strip().encode(), digest_size=16
        ).digest()
    # No byte is NUL: NumPy ignores those at the end of bytes.
    keys = np.frombuffer(digests, np.uint8).reshape(-1, 16) | 1
    return np.ascontiguousarray(keys).view("S16").reshape(-1)


def _rows(path, documents, report):
    keys = document_keys(documents.texts)
    return DocumentRows(
        path, documents.labels, keys, documents.in_lines, report
    )


def hold_out_documents(rows: DocumentRows, seed: int) -> DocumentSplit:
    """Chooses the documents that are held out, see `read_document_corpus`."""
    groups = _groups(rows.keys)
    held_out = _held_out(rows.labels, groups, seed)
    if not len(held_out):
        raise DataError(
            f"{rows.path}: no document can be held out: give a file for "
            "validation, or two different texts of a label."
        )
    rest = len(rows.labels) - len(held_out)
    sizes = (
        f"Training documents: {rest} ({rows.path})",
        f"Validation documents: {len(held_out)} (held out of training)",
    )
    problems = rows.report.problems(rows.path)
    return _described(rows, groups, held_out, sizes, problems)


def compare_documents(
    rows: DocumentRows, validation: DocumentRows
) -> DocumentSplit:
    """Compares training documents with those of another file.

    Raises:
        DataError: they do not go together.
    """
    _check_agreement(rows, validation)
    problems = [
        *rows.report.problems(rows.path),
        *validation.report.problems(validation.path),
        *overlap(np.isin(validation.keys, rows.keys), "document"),
    ]
    sizes = (
        f"Training documents: {len(rows.labels)} ({rows.path})",
        f"Validation documents: {len(validation.labels)} ({validation.path})",
    )
    nothing = np.zeros(0, np.int64)
    return _described(rows, _groups(rows.keys), nothing, sizes, problems)


def _described(rows, groups, held_out, sizes, problems):
    labels = _labels(rows.labels)
    facts = *sizes, f"Labels: {len(labels)}", *_repeats(rows.labels, groups)
    problems = *problems, *_single_labels(rows, labels)
    return DocumentSplit(held_out, labels, facts, problems)


def _labels(names) -> tuple[str, ...]:
    labels = sorted(set(names))
    try:
        return tuple(sorted(labels, key=int))
    except ValueError:
        return tuple(labels)


def _groups(keys) -> np.ndarray:
    """(N,) int: the number of each different text, in their order."""
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[places]


def check_labels(rows: DocumentRows, columns):
    """Raises DataError if the labels are no labels."""
    labels, count = _labels(rows.labels), len(rows.labels)
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
    _, first = np.unique(groups, return_index=True)
    firsts = first[groups]
    repeated = np.flatnonzero(firsts != np.arange(len(groups))).tolist()
    if not repeated:
        return []
    differ = sum(labels[n] != labels[firsts[n]] for n in repeated)
    return [
        f"Duplicate documents: {len(repeated)} of {len(labels)}, "
        f"{differ} of them with a different label"
    ]


def _single_labels(rows, labels) -> list[str]:
    counts = Counter(rows.labels)
    single = [label for label in labels if counts[label] == 1]
    if not single:
        return []
    return [
        f"{rows.path}: labels that occur only once: {some(single)}. If one is "
        "a column name, set columns."
    ]


def _check_agreement(rows, validation):
    if validation.in_lines != rows.in_lines:
        forms = {False: "texts", True: "sentences"}
        raise DataError(
            "train and validation must have the same form: "
            f"{rows.path} has {forms[rows.in_lines]}, "
            f"{validation.path} has {forms[validation.in_lines]}."
        )
    refuse_unknown(
        *("has labels that", rows.path, rows.labels),
        *(validation.path, validation.labels),
    )


def _held_out(names, groups, seed) -> np.ndarray:
    """Sorted numbers of the documents that validation gets.

    Args:
        names: the label of each document.
        groups: (N,), the number of its text.
        seed: of the choice.
    """
    sizes = np.bincount(groups)
    labels = sorted(set(names))
    numbers = {label: number for number, label in enumerate(labels)}
    own = np.fromiter((numbers[name] for name in names), np.int32, len(names))
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


def _taken(documents, numbers) -> Documents:
    return Documents(
        texts=[documents.texts[number] for number in numbers],
        labels=[documents.labels[number] for number in numbers],
        in_lines=documents.in_lines,
    )
