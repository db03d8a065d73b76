"""Training, validation and test dialogues."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kseq.data.dialogues.dialogue_preprocessor import DialoguePreprocessor
from kseq.data.dialogues.dialogues import (
    Dialogues,
    answers_of,
    dialogue_problems,
    usable_dialogues,
)
from kseq.data.dialogues.prepared_dialogues import (
    PreparedDialogues,
    open_prepared_dialogues,
)
from kseq.data.dialogues.small_talk import SIZES, small_talk
from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_prepared,
    refuse_without_train,
)
from kseq.data.files.hold_out import (
    RowReader,
    Rows,
    RowSplit,
    read_and_split,
    split_rows,
)
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.source_hashes import source_hashes
from kseq.data.text.tokenized_pairs import TokenizedPairs, tokenize_pairs
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import escaped_line, progress


class DialogueCorpus(NamedTuple):
    """The data that a recipe trains on, and is evaluated on.

    Args:
        train: Dialogues.
        validation: Dialogues.
        test: Dialogues.
        facts: lines of text: the numbers of dialogues and answers.
        problems: lines of text: what is wrong with some of them.
        tokenizer: of the built-in corpus, see `prepare_dialogues`; otherwise
            None.
    """

    train: Dialogues
    validation: Dialogues
    test: Dialogues
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None

    def lines(self) -> Iterator[str]:
        """The turns of training, to train a tokenizer on."""
        return self.train.lines()

    def tokenized(self, preprocessor: DialoguePreprocessor) -> TokenizedPairs:
        """The ids of the turns and answers of training."""
        # The limit of lines is for a turn, and has been checked.
        return tokenize_pairs(
            self.train.pairs(),
            *(preprocessor, preprocessor.tokenizer),
            is_evaluation=True,
        )

    describe = facts_and_problems


def read_dialogue_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    *,
    max_turns: int = 5,
    log: bool = True,
) -> DialogueCorpus | PreparedDialogues:
    r"""Reads and checks a user's dialogues, or makes the built-in ones.

    Without a validation file about a tenth of the dialogues, and 1,000 at most,
    is held out of training; equal dialogues stay together. With files, `test`
    is `validation`; `kseq evaluate` scores a trained model on other files.

    Args:
        train: path of dialogues, see `read_dialogues`, or a folder of
            `prepare_dialogues`; None for the built-in ones, see `small_talk`.
        validation: the same, or None.
        max_turns: maximum number of turns before an answer, the last ones;
            those of the built-in corpus are whole.
        log: whether to log the facts, and the problems as warnings.

    Raises:
        DataError: a file cannot be used.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("Hi!\nHello!\n\nNo?\nNo.\nOh.\n")
    >>> print(*read_dialogue_corpus("a.txt").describe(), sep="\n")
    Training dialogues: 1, 1 answers (a.txt)
    Validation dialogues: 1, 2 answers (held out of training)
    """
    if train is None:
        refuse_without_train(validation=validation)
        return DialogueCorpus(*map(small_talk, SIZES))
    if is_prepared(train):
        refuse_prepared(validation=validation)
        return logged(open_prepared_dialogues(train, max_turns), log)
    *splits, _, split = read_and_split(DIALOGUE_READER, train, validation)
    dialogues, held_out = (answers_of(turns, max_turns) for turns in splits)
    corpus = DialogueCorpus(
        *(dialogues, held_out, held_out),
        split.facts,
        split.problems,
    )
    return logged(corpus, log)


def _read(path, add) -> Rows:
    counts, answers = Counter(), []

    def texts():
        for turns in usable_dialogues(path, counts):
            add(turns)
            answers.append(len(turns) - 1)
            yield "\n".join(turns).encode()

    with progress(f"Reading {escaped_line(path)}"):
        hashes = source_hashes(texts())
    problems = dialogue_problems(path, counts)
    return Rows(path, hashes, problems, sizes=np.array(answers))


def _split(rows, validation) -> RowSplit:
    split = split_rows(
        *(rows, validation, "dialogue"), two="two dialogues", unit="answers"
    )
    repeats = len(rows.hashes) - len(np.unique(rows.hashes))
    if not repeats:
        return split
    fact = f"Duplicate dialogues: {repeats}"
    return split._replace(facts=(*split.facts, fact))


# A row is the turns of a dialogue.
DIALOGUE_READER = RowReader(_read, _split)
