"""Training, validation and test dialogues."""

import os
from typing import NamedTuple

import numpy as np

from kseq.data.dialogues.dialogues import (
    Dialogues,
    answers_of,
    examine_dialogues,
)
from kseq.data.dialogues.small_talk import SIZES, small_talk
from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_without_train,
)
from kseq.data.files.hold_out import overlap, split_numbers
from kseq.data.files.source_hashes import source_hashes
from kseq.data.files.text_files import matching_files


class DialogueCorpus(NamedTuple):
    """The data that a recipe trains on, and is evaluated on.

    Args:
        train: Dialogues.
        validation: Dialogues.
        test: Dialogues.
        facts: lines of text: the numbers of dialogues and answers.
        problems: lines of text: what is wrong with some of them.
    """

    train: Dialogues
    validation: Dialogues
    test: Dialogues
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    describe = facts_and_problems


def read_dialogue_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    *,
    max_turns: int = 5,
    log: bool = True,
) -> DialogueCorpus:
    r"""Reads and checks a user's dialogues, or makes the built-in ones.

    Without a validation file about a tenth of the dialogues, and 1,000 at
    most, is held out of training; equal dialogues stay together. With files,
    `test` is `validation`; `kseq evaluate` scores a trained model on any
    other.

    Args:
        train: path of dialogues, see `read_dialogues`; None for the built-in
            ones, see `small_talk`.
        validation: the same, or None.
        max_turns: maximum number of turns before an answer, the last ones;
            those of the built-in corpus are whole.
        log: whether the facts are logged, what is wrong as a warning.

    Returns:
        DialogueCorpus.

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
    paths = [train, validation] if validation else [train]
    for path in paths:
        matching_files(path)
    found = [examine_dialogues(path) for path in paths]
    problems = [
        line
        for path, (_, report) in zip(paths, found, strict=True)
        for line in report.problems(path)
    ]
    trained, hashes = found[0][0], _hashes(found[0][0])
    if validation:
        judged, title = found[1][0], validation
        problems += overlap(np.isin(_hashes(judged), hashes), "dialogue")
    else:
        title = "held out of training"
        numbers = split_numbers(hashes, train, "dialogue", "two dialogues")
        trained, judged = (
            [trained[number] for number in part] for part in numbers
        )

    training, held_out = (
        answers_of(dialogues, max_turns) for dialogues in (trained, judged)
    )
    repeats = len(hashes) - len(np.unique(hashes))
    corpus = DialogueCorpus(
        *(training, held_out, held_out),
        facts=(
            _size("Training", trained, training, train),
            _size("Validation", judged, held_out, title),
            *([f"Duplicate dialogues: {repeats}"] if repeats else []),
        ),
        problems=tuple(problems),
    )
    return logged(corpus, log)


def _hashes(dialogues):
    return source_hashes("\n".join(turns).encode() for turns in dialogues)


def _size(split, dialogues, answers, path) -> str:
    return (
        f"{split} dialogues: {len(dialogues)}, {len(answers.answers)} answers "
        f"({path})"
    )
