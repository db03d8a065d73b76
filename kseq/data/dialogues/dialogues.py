"""Turns of dialogues and their answers."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import tensorflow as tf

from kseq.data.dialogues.dialogue_files import dialogues_of_files
from kseq.data.files.corpora import log_problems
from kseq.data.files.data_error import DataError
from kseq.data.files.reading_problems import reading_problems
from kseq.data.files.text_files import LONGEST_LINE
from kseq.terminal import escaped_line, progress
from kseq.user_error import check_integers


class Dialogues(NamedTuple):
    """Turns and the answers to them, all in memory.

    Args:
        contexts: list of lists of str, the turns before each answer.
        answers: list of str.
        evidence: only of the built-in corpus: for each answer the index in its
            context of the turn that states its fact.
        facts: only of the built-in corpus: the word of each answer that is its
            fact.
    """

    contexts: list[list[str]]
    answers: list[str]
    evidence: list[int] | None = None
    facts: list[str] | None = None

    def lines(self) -> Iterator[str]:
        """All turns, to train a tokenizer on; those of a dialogue once."""
        before = None
        for context, answer in zip(self.contexts, self.answers, strict=True):
            # The answer before it is the last turn of a dialogue's context.
            if context[-1] is not before:
                yield from context
            yield answer
            before = answer

    def pairs(self) -> tf.data.Dataset:
        """Scalar strings (turns, answer), a line for each turn."""
        contexts = ["\n".join(turns) for turns in self.contexts]
        return tf.data.Dataset.from_tensor_slices((contexts, self.answers))

    def sample(self, count: int) -> "Dialogues":
        """Up to `count` answers, evenly spaced."""
        total = len(self.answers)
        if total <= count:
            return self
        places = [number * total // count for number in range(count)]
        return Dialogues(
            *(column and [column[place] for place in places] for column in self)
        )


def dialogue_problems(path, counts: Counter) -> list[str]:
    """What is wrong with a file, one line per problem."""
    left_out = {
        "with fewer than two turns": counts["short"],
        f"with a turn over {LONGEST_LINE // 1024} KiB": counts["too_long"],
    }
    kept = counts["dialogues"], "dialogues"
    lines = reading_problems(path, kept, left_out, counts["invalid"])
    if marked := counts["marked"]:
        lines.append(
            f"{path}: {marked} lines are a dialogue each, whose turns end at "
            "__eou__."
        )
    if blank := counts["blank"]:
        lines.append(f"{path}: {blank} blank turns are left out.")
    return lines


def read_dialogues(path: str | os.PathLike, max_turns: int = 5) -> Dialogues:
    r"""Reads dialogues from JSON lines or from a text.

    Every turn after the first is an answer to those before it. A .jsonl or
    .json file has an object with `turns`, a list of strings, in each line; any
    other file is a text, one turn per line, with a blank line between
    dialogues, or one dialogue per line, in which `__eou__` ends a turn. All
    of them may be compressed. A .parquet file has a column `turns`.

    White space inside a turn becomes one space. Blank turns are left out, as
    are dialogues of fewer than two turns or with a turn over 64 KiB, and
    invalid UTF-8 becomes U+FFFD; all of it is counted and logged.

    Args:
        path: a file, or a pattern that matches several.
        max_turns: maximum number of turns of a context, the last ones.

    Returns:
        Dialogues, in the order of the file.

    Raises:
        DataError: a file cannot be read, a line is broken, or no dialogue is
            left.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("Hi!\nHello!\nWho are you?\n")
    >>> read_dialogues("a.txt").contexts
    [['Hi!'], ['Hi!', 'Hello!']]
    """
    counts = Counter()
    with progress(f"Reading {escaped_line(path)}"):
        dialogues = answers_of(usable_dialogues(path, counts), max_turns)
    log_problems(dialogue_problems(path, counts))
    return dialogues


def usable_dialogues(
    path: str | os.PathLike, counts: Counter
) -> Iterator[list[str]]:
    """The turns of each dialogue of `read_dialogues`.

    Counts `dialogues`, and what `dialogues_of_files` counts.
    """
    for turns in dialogues_of_files(path, counts):
        counts["dialogues"] += 1
        yield turns
    if not counts["dialogues"]:
        raise DataError(f"{path}: it has no dialogue of at least two turns.")


def answers_of(dialogues: Iterable[list[str]], max_turns: int) -> Dialogues:
    """Every turn after the first, with at most `max_turns` before it."""
    check_integers(max_turns=max_turns)
    contexts, answers = [], []
    for turns in dialogues:
        for place in range(1, len(turns)):
            contexts.append(turns[max(place - max_turns, 0) : place])
            answers.append(turns[place])
    return Dialogues(contexts, answers)
