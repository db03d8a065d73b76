"""Training, validation and test text of a language model."""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.tables import notes_on
from kseq.data.running_text.brackets import SIZES, are_matched, brackets
from kseq.data.running_text.text_documents import read_texts

_TRAINED = 0.9  # of the characters, where none are given for validation


class TextCorpus(NamedTuple):
    """The data that a language model is trained and evaluated on, in memory.

    Args:
        train: list of str, documents.
        validation: list of str.
        test: list of str.
        facts: lines of text: the amount of text.
        problems: lines of text: what is unusual about the files.
        is_valid: only of the built-in text: a function str -> bool, whether a
            text follows its rule.
    """

    train: list[str]
    validation: list[str]
    test: list[str]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    is_valid: Callable[[str], bool] | None = None

    def lines(self) -> Iterator[str]:
        """The lines of training with their line breaks, for a tokenizer."""
        for document in self.train:
            yield from lines_of(document)

    describe = facts_and_problems


def lines_of(document: str) -> list[str]:
    r"""The lines of a document, each with its line break.

    >>> lines_of("a\nb")
    ['a\n', 'b']
    """
    *lines, last = document.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def read_text_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    column: str = "text",
    *,
    log: bool = True,
) -> TextCorpus:
    r"""Reads a user's text, or makes the built-in brackets.

    A .jsonl or .json file has one document per line, a .csv or .tsv file one
    per row; its first row names the columns. Any other file is one document.
    All of them may be compressed, and a pattern names several files. In a
    folder each .txt file is a document, also in the folders inside it, in the
    order of their paths.

    Without a validation file the last tenth of the characters is held out of
    training. With files, `test` is `validation`.

    Args:
        train: path of the text; None for the built-in one, see `brackets`.
        validation: the same, or None.
        column: key or name of the column of the documents.
        log: whether the facts are logged.

    Raises:
        DataError: a file cannot be used, or there is too little text.

    Example:
    >>> import pathlib
    >>> file = pathlib.Path("poem.txt")
    >>> _ = file.write_text("A rose is a rose\nis a rose.\n")
    >>> read_text_corpus(file).validation
    ['e.\n']
    """
    if train is None:
        refuse_without_train(validation=validation)
        splits = (brackets(split) for split in SIZES)
        return TextCorpus(*splits, is_valid=are_matched)
    documents = read_texts(train, column)
    if validation is None:
        documents, held_out = _cut(train, documents)
        source = "held out of training: the end"
    else:
        held_out, source = read_texts(validation, column), validation
    corpus = TextCorpus(
        documents,
        held_out,
        held_out,
        facts=(
            f"Training text: {_size(documents)} ({train})",
            f"Validation text: {_size(held_out)} ({source})",
        ),
        problems=tuple(
            note
            for path in (train, validation)
            if path is not None
            for note in notes_on(path, default=None)
        ),
    )
    return logged(corpus, log)


def _cut(path, documents):
    """The first nine tenths of the characters, and the rest."""
    left = int(_TRAINED * sum(map(len, documents)))
    first = []
    for place, document in enumerate(documents):
        if left < len(document):
            rest = [document[left:], *documents[place + 1 :]]
            first += [document[:left]] if left else []
            if not first:
                break
            return first, rest
        first.append(document)
        left -= len(document)
    raise DataError(f"{path}: there is too little text to hold some out.")


def _size(documents):
    characters = sum(map(len, documents))
    count = len(documents)
    return f"{characters:,} characters in {count:,} document" + "s" * (
        count != 1
    )
