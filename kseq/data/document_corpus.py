"""Training, validation and test documents."""

import logging
import os
import random
from collections import Counter, defaultdict
from typing import NamedTuple

from kseq.data.built_in.dispatch_reports import SIZES, dispatch_reports
from kseq.data.data_error import DataError
from kseq.data.documents import Documents, read_documents

_MOST_HELD_OUT = 2_500

_log = logging.getLogger(__name__)


class DocumentCorpus(NamedTuple):
    """What a classifier trains on and is evaluated on, all in memory.

    Args:
        train: Documents.
        validation: Documents.
        test: Documents.
        labels: those of `train`, sorted; as numbers if all are integers.
    """

    train: Documents
    validation: Documents
    test: Documents
    labels: tuple[str, ...]


def read_document_corpus(
    train: str | os.PathLike = "",
    validation: str | os.PathLike = "",
    columns: tuple[str, str] = ("label", "text"),
    *,
    seed: int = 1,
) -> DocumentCorpus:
    r"""Reads and checks a user's documents, or makes the built-in reports.

    All documents are held in memory. Without a validation file a tenth of
    each label's documents, drawn by `seed`, is held out of training, or less
    if that is more than 2,500 in all. Of a label with two different texts,
    one is held out. Documents with the same text stay together, and in
    training if their labels differ. With files, `test` is `validation`.

    Args:
        train: path of the documents, see `read_documents`; none for the
            built-in ones, see `dispatch_reports`.
        validation: the same, or none.
        columns: keys or columns of the label and of the text, in both files.
        seed: of the documents held out.

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
    if validation and not train:
        raise DataError("validation needs train.")
    if not train:
        splits = {split: dispatch_reports(split) for split in SIZES}
        return DocumentCorpus(**splits, labels=_labels(splits["train"]))

    documents = read_documents(train, columns)
    labels = _labels(documents)
    if len(labels) < 2:
        raise DataError(
            f"{train}: expected two labels or more; found {labels[0]!r} alone."
        )
    places = _places(documents)
    _warn_of_repeats(train, documents, places)
    _warn_of_single_labels(train, documents)
    if not validation:
        documents, held_out = _split(train, documents, places, seed)
        return DocumentCorpus(documents, held_out, held_out, labels)

    held_out = read_documents(validation, columns)
    _check_agreement(train, documents, validation, held_out)
    overlap = sum(_key(held) in places for held in held_out.texts)
    if overlap:
        _log.warning(
            f"{overlap} of {len(held_out.texts)} documents of {validation} "
            f"are also in {train}: scores on it will be too good."
        )
    return DocumentCorpus(documents, held_out, held_out, labels)


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


def _warn_of_repeats(train, documents, places):
    repeats = [
        documents.labels[place] == documents.labels[first]
        for first, *others in places.values()
        for place in others
    ]
    if repeats:
        _log.warning(
            f"{train}: {len(repeats)} of {len(documents.texts)} documents "
            f"repeat another one, {repeats.count(False)} of them with another "
            "label than it."
        )


def _warn_of_single_labels(train, documents):
    counts = Counter(documents.labels)
    single = [label for label in _labels(documents) if counts[label] == 1]
    if single:
        names = ", ".join(map(repr, single[:5])) + ", ..." * (len(single) > 5)
        _log.warning(
            f"{train}: labels of one document only: {names}. If that is the "
            "name of a column, set columns."
        )


def _check_agreement(train, documents, validation, held_out):
    if held_out.in_lines != documents.in_lines:
        forms = {False: "texts", True: "sentences"}
        raise DataError(
            "train and validation must have the same form: "
            f"{train} has {forms[documents.in_lines]}, "
            f"{validation} has {forms[held_out.in_lines]}."
        )
    unknown = sorted(set(held_out.labels) - set(documents.labels))
    if unknown:
        raise DataError(
            f"{validation} has labels that {train} does not have: "
            f"{', '.join(map(repr, unknown))}"
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
