"""kseq check: the numbers of a corpus, before anything is trained."""

from kseq.data import (
    DataError,
    read_caption_corpus,
    read_corpus,
    read_document_corpus,
)
from kseq.data.document_labels import DEFAULT_COLUMNS


def run(options):
    """Prints what a recipe would train on and what it would leave out."""
    if options.documents and options.features:
        raise DataError("--documents and --features exclude each other.")
    read = _read_documents if options.documents else _read_pairs
    if options.features:
        read = _read_captions
    for line in read(options).describe():
        print(line)


def _read_pairs(options):
    return read_corpus(
        options.files,
        options.validation or None,
        options.columns or (),
        log=False,
    )


def _read_captions(options):
    return read_caption_corpus(
        *_one_file_each(options, "--features"),
        options.columns or (),
        features=options.features,
        log=False,
    )


def _one_file_each(options, name):
    files = [options.files, options.validation or [None]]
    if any(len(paths) != 1 for paths in files):
        raise DataError(
            f"{name} takes one file, and one for --validation. A pattern "
            "in quotes names several."
        )
    (train,), (validation,) = files
    return train, validation


def _read_documents(options):
    train, validation = _one_file_each(options, "--documents")
    return read_document_corpus(
        train, validation, options.columns or DEFAULT_COLUMNS, log=False
    )
