"""Prepares documents for training: checks and tokenizes them once."""

import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from kseq.data.documents.document_corpus import (
    DocumentCorpus,
    document_reader,
    read_document_corpus,
    sorted_labels,
)
from kseq.data.documents.document_preprocessor import DocumentPreprocessor
from kseq.data.documents.documents import DEFAULT_COLUMNS, lines_of_document
from kseq.data.documents.prepared_documents import (
    KIND,
    PreparedDocuments,
    open_prepared_documents,
)
from kseq.data.files.corpora import logged
from kseq.data.files.labelled_batches import class_numbers
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.row_parts import PART_SIZE
from kseq.data.text.prepare_rows import prepare_rows, with_tokenizer
from kseq.data.text.tokenizer import Tokenizer
from kseq.files.atomic_write import atomic_write


def prepare_documents(
    folder: str | os.PathLike,
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: tuple[str, ...] = DEFAULT_COLUMNS,
    *,
    vocab_size: int = 16_000,
    tokenizer: Tokenizer | None = None,
    seed: int = 1,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> PreparedDocuments | DocumentCorpus:
    r"""Checks and tokenizes documents once, and writes a folder to train from.

    The documents, the held-out part and the problems are those of
    `read_document_corpus`, but the texts are not held in memory: 16 bytes of
    each document are, and its label. The same files give the same bytes,
    whatever the number of processes. If the process ends before it has
    finished, the same call resumes; if the folder is complete, it is opened.

    Args:
        folder: where to write. It has the ids of training in files that are
            read without loading them, the documents of validation as text, and
            the tokenizer.
        train: path, see `read_document_corpus`; a folder that is prepared
            already is opened, and the built-in corpus is not written.
        validation: the same, or None.
        columns: see `read_document_corpus`.
        vocab_size: see `Tokenizer.train`.
        tokenizer: by default one is trained. If `train` is a prepared folder,
            it must be the tokenizer of that folder.
        seed: of the documents held out.
        processes: number of processes. By default all cores for large files,
            and this process alone for others.
        beam: see `prepare_pairs`.
        log: whether to log the facts, and the problems as warnings.
        part_size: bytes of text that a process tokenizes together.

    Raises:
        DataError: a file cannot be used, or the folder was prepared from
            different files or with different options.
        DiskError: the disk is full.

    Example:
    >>> import pathlib
    >>> rows = [f"{n % 2}\tReport {n}. All is well.\n" for n in range(20)]
    >>> _ = pathlib.Path("a.tsv").write_text("".join(rows))
    >>> prepared = prepare_documents("prepared", "a.tsv", vocab_size=290)
    >>> len(prepared.ids), len(prepared.validation.texts), prepared.labels
    (18, 2, ('0', '1'))
    """
    if train is None or is_prepared(train):
        corpus = read_document_corpus(train, validation, columns, log=False)
    else:
        options = {
            "columns": [*columns],
            "seed": seed,
            "part_size": part_size,
        }
        prepare_rows(
            *(folder, KIND, (train, validation), options),
            *(document_reader(columns, seed), _record),
            *(lambda row: lines_of_document(row[1]), _ids),
            *(vocab_size, tokenizer, processes, beam),
        )
        corpus = open_prepared_documents(folder)
    corpus = with_tokenizer(corpus, KIND, tokenizer, vocab_size)
    return logged(corpus, log)


def _record(folder, rows, parts, split) -> dict[str, Any]:
    """Writes the numbers of the labels of training."""
    labels = sorted_labels(rows.labels)
    numbers = class_numbers(rows.labels, labels)[split.rest]
    atomic_write(folder.parent / "labels.values", numbers.tobytes())
    return {"labels": labels, "in_lines": rows.in_lines}


def _ids(rows, tokenizer: Tokenizer, record) -> tf.RaggedTensor:
    texts = tf.constant([text for _, text in rows], tf.string)
    preprocessor = DocumentPreprocessor(tokenizer, in_lines=record["in_lines"])
    return preprocessor.tokenize(texts)
