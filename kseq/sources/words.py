"""Sentences whose words count, in files with a tag for each word."""

import dataclasses
from collections import Counter

from kseq import data
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS, tagged_rows
from kseq.sources.prepare_file import prepare_with_bpe
from kseq.sources.text import TEXT


def _first_rows(path, columns, num_files):
    return tagged_rows(path, columns or DEFAULT_COLUMNS, Counter())


def _read_corpus(options, train, validation):
    return data.read_tagging_corpus(
        train, validation, options.columns or DEFAULT_COLUMNS, log=False
    )


def _prepare(options, kept, beam):
    return prepare_with_bpe(
        *(data.prepare_tags, options, kept, beam),
        *("tags", "Words", tuple(options.columns) or DEFAULT_COLUMNS),
    )


def _read_examples(model, options):
    return data.read_tagged_sentences(
        options.source, options.columns or DEFAULT_COLUMNS
    )


WORDS = dataclasses.replace(
    TEXT,
    preprocessor="WordPreprocessor",
    content="tags",
    prepared="sentences",
    more_columns=0,
    files="file of sentences and tags",
    first_rows=_first_rows,
    option="tags",
    trains="tag_words",
    read_corpus=_read_corpus,
    prepare=_prepare,
    read_examples=_read_examples,
)
