"""kseq check: the numbers of a corpus, before anything is trained."""

from kseq.data import DataError, read_corpus, read_document_corpus
from kseq.data.document_labels import DEFAULT_COLUMNS


def run(options):
    """Prints what a recipe would train on and what it would leave out."""
    read = _read_documents if options.documents else _read_pairs
    for line in read(options).describe():
        print(line)


def _read_pairs(options):
    return read_corpus(
        options.files,
        options.validation or None,
        options.columns or (),
        log=False,
    )


def _read_documents(options):
    files = [options.files, options.validation or [None]]
    if any(len(paths) != 1 for paths in files):
        raise DataError(
            "--documents takes one file, and one for --validation. A pattern "
            "in quotes names several."
        )
    (train,), (validation,) = files
    return read_document_corpus(
        train, validation, options.columns or DEFAULT_COLUMNS, log=False
    )
