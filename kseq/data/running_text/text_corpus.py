"""Training, validation and test text of a language model."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_prepared,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import overlap
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.running_text.brackets import SIZES, are_matched, brackets
from kseq.data.running_text.prepared_text import (
    PreparedText,
    open_prepared_text,
)
from kseq.data.running_text.running_ids import lines_of, running_ids
from kseq.data.running_text.text_documents import (
    DEFAULT_COLUMN,
    Chunk,
    check_column,
    texts_and_problems,
)
from kseq.data.text.tokenizer import Tokenizer

# The characters of validation, where none are given: a tenth of all, at most.
_MOST_HELD_OUT = 1_000_000


class TextCorpus(NamedTuple):
    """The data that a language model is trained and evaluated on, in memory.

    Args:
        train: list of str, documents.
        validation: list of str.
        test: list of str.
        facts: lines of text: the amount of text.
        problems: lines of text: what is unusual about the files, what is left
            out, and whether documents of validation are also in training.
        is_valid: only of the built-in text: a function str -> bool, whether a
            text follows its rule.
        tokenizer: of the built-in text, see `prepare_text`; otherwise None.
    """

    train: list[str]
    validation: list[str]
    test: list[str]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    is_valid: Callable[[str], bool] | None = None
    tokenizer: Tokenizer | None = None

    def tokenized(self, tokenizer: Tokenizer) -> np.ndarray:
        """The tokens of the training text, see `running_ids`."""
        return running_ids(self.train, tokenizer)

    def lines(self) -> Iterator[str]:
        """The lines of training with their line breaks, for a tokenizer."""
        for document in self.train:
            yield from lines_of(document)

    describe = facts_and_problems


def read_text_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    column: str = DEFAULT_COLUMN,
    *,
    log: bool = True,
) -> TextCorpus | PreparedText:
    r"""Reads a user's text, or makes the built-in brackets.

    A .jsonl or .json file has one document per line, a .csv or .tsv file one
    per row; its first row names the columns. Any other file is one document.
    All of them may be compressed, and a pattern names several files. In a
    folder each .txt file is a document, also in the folders inside it, in the
    order of their paths.

    Without a validation file the last tenth of the characters, and a million
    at most, is held out of training. With files, `test` is `validation`.

    Args:
        train: path of the text, or a folder of `prepare_text`; None for the
            built-in text, see `brackets`.
        validation: the same, or None.
        column: key or name of the column of the documents.
        log: whether the facts are logged.

    Raises:
        DataError: a file cannot be used, there is too little text, or there is
            a column, but no table.

    Example:
    >>> import pathlib
    >>> file = pathlib.Path("poem.txt")
    >>> _ = file.write_text("A rose is a rose\nis a rose.\n")
    >>> read_text_corpus(file).validation
    ['e.\n']
    """
    given = {"validation": validation, "column": column != DEFAULT_COLUMN}
    if train is None:
        refuse_without_train(**given)
        splits = (brackets(split) for split in SIZES)
        return TextCorpus(*splits, is_valid=are_matched)
    if is_prepared(train):
        refuse_prepared(**given)
        return logged(open_prepared_text(train), log)
    check_column(column, train, validation)
    documents, problems = texts_and_problems(train, column)
    if validation is None:
        documents, held_out = _cut(train, documents)
    else:
        held_out, more = texts_and_problems(validation, column)
        problems += more
    repeated = repeated_documents(map(Chunk, documents), held_out)
    corpus = TextCorpus(
        documents,
        held_out,
        held_out,
        facts=(
            size_of_text("Training", *_size(documents), train),
            size_of_text("Validation", *_size(held_out), validation),
        ),
        problems=(*problems, *repeated),
    )
    return logged(corpus, log)


def repeated_documents(
    chunks: Iterable[Chunk], held_out: list[str]
) -> list[str]:
    """A line about documents of validation that are in training, or none.

    Those that differ only in space at their ends are the same.

    Args:
        chunks: of the documents of training, of which none is kept.
        held_out: the documents of validation.
    """
    hashes = list(_hashes(map(Chunk, held_out)))
    known = {*hashes}.intersection(_hashes(chunks))
    return overlap([each in known for each in hashes], "document")


def _hashes(chunks) -> Iterator[bytes]:
    """A hash of each document."""
    digest, text, is_inside = hashlib.sha256(), "", False
    for chunk in chunks:
        text += chunk.text
        text = text if is_inside else text.lstrip()
        kept = text.rstrip()
        digest.update(kept.encode())
        # Space at the end of a chunk can be inside of the document.
        text, is_inside = text[len(kept) :], is_inside or bool(kept)
        if chunk.ends:
            yield digest.digest()
            digest, text, is_inside = hashlib.sha256(), "", False


def trained_characters(path, characters: int) -> int:
    """How many characters of a text are trained on; the end is held out.

    Raises:
        DataError: there is too little text.
    """
    trained = max(int(0.9 * characters), characters - _MOST_HELD_OUT)
    if not trained:
        raise DataError(f"{path}: there is too little text to hold some out.")
    return trained


def _cut(path, documents):
    """The first nine tenths of the characters, and the rest."""
    left = trained_characters(path, sum(map(len, documents)))
    place = 0
    while left >= len(documents[place]):
        left -= len(documents[place])
        place += 1
    cut = documents[place]
    first = documents[:place] + ([cut[:left]] if left else [])
    return first, [cut[left:], *documents[place + 1 :]]


def _size(documents):
    return sum(map(len, documents)), len(documents)


def size_of_text(split, characters: int, documents: int, path=None) -> str:
    """A line about the amount of text; without a path it is held out."""
    source = "held out of training: the end" if path is None else path
    plural = "s" * (documents != 1)
    return (
        f"{split} text: {characters:,} characters in {documents:,} "
        f"document{plural} ({source})"
    )
