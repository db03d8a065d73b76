"""Documents: text whose sentences count, in files with a label for each."""

import dataclasses
from collections import Counter

from kseq import data
from kseq.data.documents.documents import DEFAULT_COLUMNS, document_rows
from kseq.sources.prepare_file import prepare_with_bpe
from kseq.sources.text import TEXT


def _first_rows(path, columns, num_files):
    return document_rows(path, columns or DEFAULT_COLUMNS, Counter())


def _read_corpus(options, train, validation):
    return data.read_document_corpus(
        train, validation, options.columns or DEFAULT_COLUMNS, log=False
    )


def _prepare(options, kept, beam):
    return prepare_with_bpe(
        *(data.prepare_documents, options, kept, beam),
        *("documents", "Documents", tuple(options.columns) or DEFAULT_COLUMNS),
    )


def _read_examples(model, options):
    return data.read_documents(
        options.source, options.columns or DEFAULT_COLUMNS
    )


DOCUMENTS = dataclasses.replace(
    TEXT,
    preprocessor="DocumentPreprocessor",
    content="documents",
    prepared="documents",
    optional_columns=1,  # the second text of pairs
    more_columns=0,
    files="file of labels and texts",
    first_rows=_first_rows,
    option="documents",
    trains="classify_documents",
    read_corpus=_read_corpus,
    prepare=_prepare,
    read_examples=_read_examples,
)
