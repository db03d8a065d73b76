"""Sentences with a tag for each word."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kseq.data.files.blank_text import is_blank
from kseq.data.files.corpora import log_problems
from kseq.data.files.data_error import DataError
from kseq.data.files.reading_problems import reading_problems
from kseq.data.files.tables import notes_on
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS, tagged_rows
from kseq.terminal import escaped_line, progress

LONGEST_SENTENCE = 500  # words; longer ones are left out


class TaggedSentences(NamedTuple):
    """Sentences and the tags of their words, all in memory.

    Args:
        texts: the words of each sentence, separated by spaces.
        tags: for each sentence a list with one tag for each word.
    """

    texts: list[str]
    tags: list[list[str]]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, list[str]]]) -> "TaggedSentences":
        """The sentences of rows, a text and its tags each."""
        rows = list(rows)
        return cls([text for text, _ in rows], [tags for _, tags in rows])

    def lines(self) -> Iterator[str]:
        """All texts, to train a tokenizer on."""
        return iter(self.texts)


def sentence_problems(path, counts: Counter) -> list[str]:
    """What is wrong with a file, one line per problem."""
    notes = notes_on(path, default=None)
    if spaced := counts["spaced"]:
        notes.append(
            f"{path}: {spaced} words have a space inside, which becomes a "
            "no-break space, U+00A0. Write it so in text that the model is to "
            "tag, too, because a space separates words."
        )
    left_out = {
        "blank": counts["blank"],
        f"of more than {LONGEST_SENTENCE} words": counts["too_long"],
    }
    kept = counts["sentences"], "sentences"
    return notes + reading_problems(path, kept, left_out, counts["invalid"])


def read_tagged_sentences(
    path: str | os.PathLike, columns: tuple[str, str] = DEFAULT_COLUMNS
) -> TaggedSentences:
    r"""Reads tagged sentences from JSON lines, a table, or columns of words.

    A .jsonl or .json file has one JSON object a line, with words and tags,
    either both as lists or as strings that are separated by spaces. A .tsv or
    .csv file has a row for each sentence, with two such strings. Any other file
    is in the format of the CoNLL shared tasks: a line for each word, with its
    tag after a tab or spaces, and a blank line after each sentence. In CoNLL-U,
    comments, multiword tokens and empty nodes are skipped. All of them may be
    compressed. A .parquet file has a row for each sentence.

    A space inside a word of CoNLL-U becomes a no-break space, because spaces
    separate words.

    All sentences are held in memory. Blank ones and those of more than 500
    words are left out, and invalid UTF-8 becomes U+FFFD; both are counted and
    logged.

    Args:
        path: a file, or a pattern that matches several, read in the order
            of their names.
        columns: the keys, names or numbers of words and tags; for a file with a
            word per line, numbers from "1". A tag has at most 100 characters
            and no white space.

    Returns:
        TaggedSentences, in the order of the file.

    Raises:
        DataError: a file cannot be read, a line is broken, a sentence does
            not have one tag for each word, or no sentence is left.

    Example:
    >>> import pathlib
    >>> file = pathlib.Path("train.conll")
    >>> _ = file.write_text("to\tO\nOslo\tB-to\n\nHello\tO\n")
    >>> read_tagged_sentences(file)
    TaggedSentences(texts=['to Oslo', 'Hello'], tags=[['O', 'B-to'], ['O']])
    """
    counts = Counter()
    with progress(f"Reading {escaped_line(path)}"):
        sentences = TaggedSentences.of(usable_sentences(path, columns, counts))
    log_problems(sentence_problems(path, counts))
    return sentences


def usable_sentences(
    path, columns, counts: Counter
) -> Iterator[tuple[str, list[str]]]:
    """The texts and tags of `read_tagged_sentences`, one after the other.

    Counts `sentences`, those that are `too_long`, and what `tagged_rows`
    counts.
    """
    for row in tagged_rows(path, columns, counts):
        text = " ".join(row.words)
        if is_blank(text):
            counts["blank"] += 1
        elif len(row.words) > LONGEST_SENTENCE:
            counts["too_long"] += 1
        else:
            counts["sentences"] += 1
            yield text, row.tags
    if not counts["sentences"]:
        raise DataError(f"{path}: there is no sentence in it.")
