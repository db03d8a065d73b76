"""Training, validation and test sentences with a tag for each word."""

import os
from typing import NamedTuple

from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_unknown,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import hold_out, overlap
from kseq.data.files.text_files import matching_files
from kseq.data.tags.journeys import SIZES, journeys
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS
from kseq.data.tags.tagged_sentences import (
    TaggedSentences,
    examine_tagged_sentences,
)

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
    """

    train: TaggedSentences
    validation: TaggedSentences
    test: TaggedSentences
    tags: tuple[str, ...]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    describe = facts_and_problems


def read_tagging_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: tuple[str, str] = DEFAULT_COLUMNS,
    *,
    log: bool = True,
) -> TaggingCorpus:
    r"""Reads and checks a user's sentences, or makes the built-in ones.

    All sentences are held in memory. Without a validation file a tenth of
    them, at most 1,000, is held out of training; equal sentences stay
    together. With files, `test` is `validation`.

    Args:
        train: path of the sentences, see `read_tagged_sentences`; None for
            the built-in ones, see `journeys`.
        validation: the same, or None.
        columns: of words and tags, in both files.
        log: whether the facts are logged, what is wrong as a warning.

    Returns:
        TaggingCorpus.

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
    if train is None:
        refuse_without_train(validation=validation)
        splits = {split: journeys(split) for split in SIZES}
        return TaggingCorpus(**splits, tags=_tagset(splits["train"]))

    for path in (train, validation):
        if path is not None:
            matching_files(path)
    sentences, report = examine_tagged_sentences(train, columns)
    tags = _tagset(sentences)
    _check_tagset(train, sentences, tags)
    problems = report.problems(train)
    if validation is None:
        rest, held_out = hold_out(
            sentences,
            TaggedSentences._fields,
            train,
            "sentence",
            "two different sentences",
            key="texts",
        )
        of_validation = " (held out of training)"
    else:
        rest = sentences
        held_out, other = examine_tagged_sentences(validation, columns)
        refuse_unknown(
            "has tags that", train, tags, validation, _tagset(held_out)
        )
        of_validation = f" ({validation})"
        problems += [*other.problems(validation), *_overlap(rest, held_out)]
    corpus = TaggingCorpus(
        rest,
        held_out,
        held_out,
        tags,
        facts=(
            f"Training sentences: {_numbers(rest)} ({train})",
            f"Validation sentences: {_numbers(held_out)}{of_validation}",
            f"Tags: {len(tags)}",
        ),
        problems=tuple(problems),
    )
    return logged(corpus, log)


def _numbers(sentences) -> str:
    words = sum(map(len, sentences.tags))
    return f"{len(sentences.texts)}, {words} words"


def _tagset(sentences) -> tuple[str, ...]:
    return tuple(sorted({tag for tags in sentences.tags for tag in tags}))


def _check_tagset(train, sentences, tags):
    if len(tags) < 2:
        raise DataError(
            f"{train}: expected two tags or more; found {tags[0]!r} alone."
        )
    words = {word for text in sentences.texts for word in text.split(" ")}
    if len(tags) > max(_MOST_UNCHECKED, len(words)):
        raise DataError(
            f"{train}: there are {len(tags)} different tags and only "
            f"{len(words)} different words. If words and tags are swapped, "
            "choose their columns in the other order with --columns"
        )


def _overlap(train, held_out) -> list[str]:
    known = set(train.texts)
    return overlap([text in known for text in held_out.texts], "sentence")
