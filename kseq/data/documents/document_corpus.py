"""Training, validation and test documents."""

import os
import random
from collections import Counter, defaultdict
from typing import NamedTuple

from kseq.data.documents.dispatch_reports import SIZES, dispatch_reports
from kseq.data.documents.document_labels import DEFAULT_COLUMNS, swapped
from kseq.data.documents.documents import Documents, examine_documents
from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_unknown,
    refuse_without_train,
    some,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import overlap
from kseq.data.files.text_files import matching_files
from kseq.data.files.text_folders import is_text_folder

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
    """

    train: Documents
    validation: Documents
    test: Documents
    labels: tuple[str, ...]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    describe = facts_and_problems


def read_document_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: tuple[str, str] = DEFAULT_COLUMNS,
    *,
    seed: int = 1,
    log: bool = True,
) -> DocumentCorpus:
    r"""Reads and checks a user's documents, or makes the built-in reports.

    All documents are held in memory. Without a validation file a tenth of
    each label's documents, drawn by `seed`, is held out of training, or less
    if that is more than 2,500 in all. Of a label with two different texts,
    one is held out. Documents with the same text stay together, and in
    training if their labels differ. With files, `test` is `validation`.

    Args:
        train: path of the documents, see `read_documents`; None for the
            built-in ones, see `dispatch_reports`.
        validation: the same, or None.
        columns: keys or columns of the label and of the text, in both files.
        seed: of the documents held out.
        log: whether the facts are logged, what is wrong as a warning.

    Returns:
        DocumentCorpus.

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
        return DocumentCorpus(**splits, labels=_labels(splits["train"]))

    for path in (train, validation):
        if path is not None and not is_text_folder(path):
            matching_files(path)
    documents, report = examine_documents(train, columns)
    labels = _labels(documents)
    _check_labels(train, documents, labels, columns)
    places = _places(documents)
    if validation is None:
        rest, held_out = _split(train, documents, places, seed)
        validation_facts = " (held out of training)"
        problems = report.problems(train)
    else:
        rest = documents
        held_out, other = examine_documents(validation, columns)
        _check_agreement(train, documents, validation, held_out)
        validation_facts = f" ({validation})"
        problems = [
            *report.problems(train),
            *other.problems(validation),
            *overlap(
                [_key(text) in places for text in held_out.texts], "document"
            ),
        ]
    corpus = DocumentCorpus(
        rest,
        held_out,
        held_out,
        labels,
        facts=(
            f"Training documents: {len(rest.texts)} ({train})",
            f"Validation documents: {len(held_out.texts)}{validation_facts}",
            f"Labels: {len(labels)}",
            *_repeats(documents, places),
        ),
        problems=(*problems, *_single_labels(train, documents)),
    )
    return logged(corpus, log)


def _labels(documents) -> tuple[str, ...]:
    labels = sorted(set(documents.labels))
    try:
        return tuple(sorted(labels, key=int))
    except ValueError:
        return tuple(labels)


def _key(text) -> str:
    """The same for texts that count as the same."""
    return text.strip()


def _places(documents) -> dict[str, list[int]]:
    """The positions of each text, in the order of the documents."""
    places = defaultdict(list)
    for place, text in enumerate(documents.texts):
        places[_key(text)].append(place)
    return dict(places)


def _check_labels(train, documents, labels, columns):
    if len(labels) < 2:
        raise DataError(
            f"{train}: expected at least two labels; found only {labels[0]!r}."
        )
    count = len(documents.texts)
    if count > _MOST_UNCHECKED and 2 * len(labels) > count:
        raise DataError(
            f"{train}: column {columns[0]!r} has {len(labels)} different "
            f"values in {count} documents, too many for a label. "
            f"{swapped(columns)}"
        )


def _repeats(documents, places) -> list[str]:
    repeats = [
        documents.labels[place] == documents.labels[first]
        for first, *others in places.values()
        for place in others
    ]
    if not repeats:
        return []
    return [
        f"Duplicate documents: {len(repeats)} of {len(documents.texts)}, "
        f"{repeats.count(False)} of them with a different label"
    ]


def _single_labels(train, documents) -> list[str]:
    counts = Counter(documents.labels)
    single = [label for label in _labels(documents) if counts[label] == 1]
    if not single:
        return []
    return [
        f"{train}: labels that occur only once: {some(single)}. If one is a "
        "column name, set columns."
    ]


def _check_agreement(train, documents, validation, held_out):
    if held_out.in_lines != documents.in_lines:
        forms = {False: "texts", True: "sentences"}
        raise DataError(
            "train and validation must have the same form: "
            f"{train} has {forms[documents.in_lines]}, "
            f"{validation} has {forms[held_out.in_lines]}."
        )
    refuse_unknown(
        "has labels that", train, documents.labels, validation, held_out.labels
    )


def _split(train, documents, places, seed) -> tuple[Documents, Documents]:
    held_out = _held_out(documents, places, seed)
    if not held_out:
        raise DataError(
            f"{train}: no document can be held out: give a file for "
            "validation, or two different texts of a label."
        )
    rest = [n for n in range(len(documents.texts)) if n not in held_out]
    return _taken(documents, rest), _taken(documents, sorted(held_out))


def _held_out(documents, places, seed) -> set[int]:
    """Numbers of the documents that validation gets."""
    groups = defaultdict(list)  # label -> numbers of the same text
    stays = set()  # labels that training keeps in any case
    for group in places.values():
        names = {documents.labels[number] for number in group}
        if len(names) == 1:
            groups[names.pop()].append(group)
        else:  # a text with two labels cannot be evaluated
            stays |= names

    tenths = {
        label: max(1, round(count / 10))
        for label, count in Counter(documents.labels).items()
    }
    total = max(_MOST_HELD_OUT, sum(tenths.values()))
    draw = random.Random(seed)
    held_out = []
    for label in sorted(groups):
        draw.shuffle(groups[label])
        groups[label].sort(key=len)  # large groups last
        candidates = groups[label] if label in stays else groups[label][:-1]
        most = tenths[label] * _MOST_HELD_OUT // total
        held_out += _first(candidates, most)
    return set(held_out)


def _first(groups, most) -> list[int]:
    """Whole groups, one at least, up to `most` numbers."""
    numbers = []
    for group in groups:
        if numbers and len(numbers) + len(group) > most:
            break
        numbers += group
    return numbers


def _taken(documents, numbers) -> Documents:
    return Documents(
        texts=[documents.texts[number] for number in numbers],
        labels=[documents.labels[number] for number in numbers],
        in_lines=documents.in_lines,
    )
