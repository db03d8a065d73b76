"""Training, validation and test sentences with a tag for each word."""

import functools
import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.source_hashes import source_hashes
from kseq.data.tags.journeys import SIZES, journeys
from kseq.data.tags.prepared_tags import PreparedTags, open_prepared_tags
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS
from kseq.data.tags.tagged_sentences import (
    TaggedSentences,
    sentence_problems,
    usable_sentences,
)
from kseq.data.tags.word_preprocessor import WordPreprocessor
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import escaped_line, progress

_MOST_UNCHECKED = 20  # tags, even if there are fewer words


class TaggingCorpus(NamedTuple):
    """What a tagger trains on and is evaluated on, all in memory.

    Args:
        train: TaggedSentences.
        validation: TaggedSentences.
        test: TaggedSentences.
        tags: the tagset, all tags of the training file, sorted.
        facts: lines of text: the numbers of sentences.
        problems: lines of text: what is wrong with some of them.
        tokenizer: of the built-in corpus, see `prepare_tags`; otherwise
            None.
    """

    train: TaggedSentences
    validation: TaggedSentences
    test: TaggedSentences
    tags: tuple[str, ...]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None

    @property
    def train_tags(self) -> list[list[str]]:
        """The tags of `train`, for `tagging_batches`."""
        return self.train.tags

    def lines(self) -> Iterator[str]:
        """The texts of training, to train a tokenizer on."""
        return self.train.lines()

    def tokenized(self, preprocessor: WordPreprocessor) -> RaggedArray:
        """The ids of training, (N, W, P)."""
        return RaggedArray.of(preprocessor.tokenize_all(self.train.texts))

    describe = facts_and_problems


def read_tagging_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: tuple[str, str] = DEFAULT_COLUMNS,
    *,
    log: bool = True,
) -> TaggingCorpus | PreparedTags:
    r"""Reads and checks a user's sentences, or makes the built-in ones.

    All sentences are held in memory. Without a validation file a tenth of
    them, at most 1,000, is held out of training; equal sentences stay
    together. With files, `test` is `validation`.

    Args:
        train: path of the sentences, see `read_tagged_sentences`, or a folder
            of `prepare_tags`; None for the built-in ones, see `journeys`.
        validation: the same, or None.
        columns: of words and tags, in both files.
        log: whether to log the facts, and the problems as warnings.

    Raises:
        DataError: a file cannot be used, or the two do not go together.

    Example:
    >>> import pathlib
    >>> file = pathlib.Path("train.tsv")
    >>> _ = file.write_text("to Oslo\tO B-to\nHello\tO\n")
    >>> corpus = read_tagging_corpus(file)
    >>> corpus.tags, len(corpus.train.texts), len(corpus.test.texts)
    (('B-to', 'O'), 1, 1)
    """
    given = {
        "validation": validation,
        "columns": tuple(columns) != DEFAULT_COLUMNS,
    }
    if train is None:
        refuse_without_train(**given)
        splits = {split: journeys(split) for split in SIZES}
        tags = {tag for row in splits["train"].tags for tag in row}
        return TaggingCorpus(**splits, tags=tuple(sorted(tags)))

    if is_prepared(train):
        refuse_prepared(**given)
        return logged(open_prepared_tags(train), log)
    *splits, rows, split = read_and_split(
        tagging_reader(columns), train, validation
    )
    sentences, held_out = map(TaggedSentences.of, splits)
    corpus = TaggingCorpus(
        *(sentences, held_out, held_out),
        rows.labels,
        split.facts,
        split.problems,
    )
    return logged(corpus, log)


def tagging_reader(columns: tuple[str, str]) -> RowReader:
    """Reads rows of a text and its tags."""
    read = functools.partial(_read, columns=columns)
    return RowReader(read, _split, _check_tagset)


def _read(path, add, columns) -> Rows:
    counts, tagset, lengths = Counter(), Counter(), []

    def texts():
        for text, tags in usable_sentences(path, columns, counts):
            add((text, tags))
            tagset.update(tags)
            lengths.append(len(tags))
            yield text.encode(errors="replace")

    with progress(f"Reading {escaped_line(path)}"):
        hashes = source_hashes(texts())
    problems = sentence_problems(path, counts)
    tags = sorted(tagset)
    single = [tag for tag in tags if tagset[tag] == 1]
    return Rows(
        *(path, hashes, problems, np.array(lengths), tuple(tags), single)
    )


def _split(rows, validation) -> RowSplit:
    if validation is not None:
        refuse_unknown("tags", rows, validation)
    split = split_rows(
        *(rows, validation, "sentence"),
        two="two different sentences",
        unit="words",
    )
    return split._replace(
        facts=(*split.facts, f"Tags: {len(rows.labels)}"),
        problems=(*split.problems, *single_labels(rows, "tags")),
    )


def _check_tagset(rows, sentences):
    """Raises DataError if the tags are no tags."""
    tags = rows.labels
    if len(tags) < 2:
        raise DataError(
            f"{rows.path}: expected two tags or more; found {tags[0]!r} alone."
        )
    if len(tags) <= _MOST_UNCHECKED:
        return
    words = set()
    for text, _ in sentences:
        words.update(text.split(" "))
        if len(words) >= len(tags):
            return
    raise DataError(
        f"{rows.path}: there are {len(tags)} different tags and only "
        f"{len(words)} different words. If words and tags are swapped, "
        "choose their columns in the other order with --columns"
    )
