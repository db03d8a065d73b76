"""Prepares tagged sentences for training: checks and tokenizes them once."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kseq.data.files.corpora import logged
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.row_parts import PART_SIZE
from kseq.data.tags.prepared_tags import KIND, PreparedTags, open_prepared_tags
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS
from kseq.data.tags.tagging_corpus import (
    TaggingCorpus,
    read_tagging_corpus,
    tagging_reader,
)
from kseq.data.tags.word_preprocessor import WordPreprocessor
from kseq.data.text.prepare_rows import prepare_rows, with_tokenizer
from kseq.data.text.tokenizer import Tokenizer


def prepare_tags(
    folder: str | os.PathLike,
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: tuple[str, str] = DEFAULT_COLUMNS,
    *,
    vocab_size: int = 8000,
    tokenizer: Tokenizer | None = None,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> PreparedTags | TaggingCorpus:
    r"""Checks and tokenizes tagged sentences once, and writes a folder.

    The sentences, the held-out part and the problems are those of
    `read_tagging_corpus`, but the texts are not held in memory: 16 bytes of
    each sentence are. The same files give the same bytes, whatever the number
    of processes. If the process ends before it has finished, the same call
    resumes; if the folder is complete, it is opened.

    Args:
        folder: where to write. It has the ids and the tags of training in
            files that are read without loading them, the sentences of
            validation as text, and the tokenizer.
        train: path, see `read_tagging_corpus`; a folder that is prepared
            already is opened, and the built-in corpus is not written.
        validation: the same, or None.
        columns: see `read_tagging_corpus`.
        vocab_size: see `Tokenizer.train`.
        tokenizer: by default one is trained. If `train` is a prepared folder,
            it must be the tokenizer of that folder.
        processes: see `prepare_documents`.
        beam: see `prepare_pairs`.
        log: whether to log the facts, and the problems as warnings.
        part_size: bytes of text that a process tokenizes together.

    Raises:
        DataError: a file cannot be used, or the folder was prepared from
            different files or with different options.
        DiskError: the disk is full.

    Example:
    >>> import pathlib
    >>> rows = [f"to Oslo at {n}\tO B-to O O\n" for n in range(20)]
    >>> _ = pathlib.Path("a.tsv").write_text("".join(rows))
    >>> prepared = prepare_tags("prepared", "a.tsv", vocab_size=280)
    >>> len(prepared.ids), len(prepared.validation.texts), prepared.tags
    (18, 2, ('B-to', 'O'))
    """
    if train is None or is_prepared(train):
        corpus = read_tagging_corpus(train, validation, columns, log=False)
    else:
        options = {
            "columns": [*columns],
            "part_size": part_size,
        }
        prepare_rows(
            *(folder, KIND, (train, validation), options),
            *(tagging_reader(columns), _record, lambda row: row[:1], _ids),
            *(vocab_size, tokenizer, processes, beam),
        )
        corpus = open_prepared_tags(folder)
    corpus = with_tokenizer(corpus, KIND, tokenizer, vocab_size)
    return logged(corpus, log)


def _record(folder, rows, parts, split) -> dict[str, Any]:
    """Writes the numbers of the tags of training, one after the other."""
    places = {tag: place for place, tag in enumerate(rows.labels)}
    held_out = {*split.held_out.tolist()}
    with open(folder / "tags.values", "wb") as file:
        for number, (_, tags) in enumerate(parts.rows()):
            if number not in held_out:
                classes = np.array([places[tag] for tag in tags], np.int32)
                file.write(classes.tobytes())
    os.replace(folder / "tags.values", folder.parent / "tags.values")
    return {"tags": rows.labels}


def _ids(rows, tokenizer: Tokenizer, record) -> tf.RaggedTensor:
    texts = tf.constant([text for text, _ in rows], tf.string)
    return WordPreprocessor(tokenizer).tokenize(texts)
