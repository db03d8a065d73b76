"""Prepares dialogues for training: checks and tokenizes them once."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kseq.data.dialogues.dialogue_corpus import (
    DIALOGUE_READER,
    DialogueCorpus,
    read_dialogue_corpus,
)
from kseq.data.dialogues.prepared_dialogues import (
    KIND,
    PreparedDialogues,
    open_prepared_dialogues,
)
from kseq.data.files.corpora import logged
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.row_parts import PART_SIZE
from kseq.data.text.prepare_rows import prepare_rows, with_tokenizer
from kseq.data.text.tokenizer import Tokenizer
from kseq.files.atomic_write import atomic_write


def prepare_dialogues(
    folder: str | os.PathLike,
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    *,
    max_turns: int = 5,
    vocab_size: int = 8000,
    tokenizer: Tokenizer | None = None,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> PreparedDialogues | DialogueCorpus:
    r"""Checks and tokenizes dialogues once, and writes a folder to train from.

    The dialogues, the held-out part and the problems are those of
    `read_dialogue_corpus`, but the texts are not held in memory: 16 bytes of
    each dialogue are. The ids of each turn are written once; the turns before
    an answer are read from them in training, any number of them. The same files
    give the same bytes, whatever the number of processes. If the process ends
    before it has finished, the same call resumes; if the folder is complete, it
    is opened.

    Args:
        folder: where to write. It has the ids of training in files that are
            read without loading them, the dialogues of validation as text, and
            the tokenizer.
        train: path, see `read_dialogue_corpus`; a folder that is prepared
            already is opened, and the built-in corpus is not written.
        validation: the same, or None.
        max_turns: see `read_dialogue_corpus`; the folder does not depend on it.
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
    >>> rows = [f"Hi {n}!\nHello {n}.\nWho are you?\n\n" for n in range(20)]
    >>> _ = pathlib.Path("a.txt").write_text("".join(rows))
    >>> prepared = prepare_dialogues("prepared", "a.txt", vocab_size=290)
    >>> len(prepared.ids), len(prepared.validation.answers)
    (18, 4)
    """
    if train is None or is_prepared(train):
        corpus = read_dialogue_corpus(
            train, validation, max_turns=max_turns, log=False
        )
    else:
        options = {"part_size": part_size}
        prepare_rows(
            *(folder, KIND, (train, validation), options),
            *(DIALOGUE_READER, _record, list, _ids),
            *(vocab_size, tokenizer, processes, beam),
        )
        corpus = open_prepared_dialogues(folder, max_turns)
    corpus = with_tokenizer(corpus, KIND, tokenizer, vocab_size)
    return logged(corpus, log)


def _record(folder, rows, parts, split) -> dict[str, Any]:
    """Writes the numbers of answers."""
    answers = np.append(0, np.cumsum(rows.sizes[split.rest]))
    atomic_write(folder.parent / "answers.values", answers.tobytes())
    return {}


def _ids(rows, tokenizer: Tokenizer, record) -> tf.RaggedTensor:
    texts = [turn for turns in rows for turn in turns]
    ids, _ = tokenizer.tokenize_with_end(tf.constant(texts, tf.string))
    return tf.RaggedTensor.from_row_lengths(
        ids.with_row_splits_dtype(tf.int64),
        tf.constant([len(turns) for turns in rows], tf.int64),
    )
