"""Files of dialogues, read without TensorFlow."""

import os
from collections import Counter
from collections.abc import Iterator

from kseq.data.files.blank_text import is_blank
from kseq.data.files.data_error import DataError
from kseq.data.files.records import (
    has_records,
    read_records,
    shown_record,
    without_surrogates,
)
from kseq.data.files.tables import beginning, broken, decoded, kind_of
from kseq.data.files.text_files import LONGEST_LINE, matching_files, read_lines

_TURNS = "turns"
_END, _END_OF_TURN = b"__eou__", b"__eot__"  # of an utterance


def dialogues_of_files(
    pattern: str | os.PathLike, counts: Counter
) -> Iterator[list[str]]:
    """The turns of each dialogue, see `read_dialogues`.

    Args:
        pattern: path; a pattern names several files.
        counts: gets the numbers of turns that are `blank` or `invalid` UTF-8,
            of dialogues that are `short` or `too_long`, and of `marked` ones,
            a dialogue per line.

    Raises:
        DataError: a file cannot be read, or a line is broken.
    """
    for path in matching_files(pattern):
        if kind_of(path) in ("tsv", "csv"):
            raise DataError(
                f"{path}: expected JSON lines with {_TURNS!r} (.jsonl), or a "
                "text with a blank line between dialogues; found the name of "
                "a table."
            )
        read = _text_dialogues
        if has_records(path):
            read = _dialogues_of_records
        elif _has_marks(path):
            read = _marked_dialogues
        for texts in read(path, counts):
            turns = [" ".join(t.split()) for t in texts if not is_blank(t)]
            counts["blank"] += len(texts) - len(turns)
            if len(turns) < 2:
                counts["short"] += 1
            elif max(len(turn.encode()) for turn in turns) > LONGEST_LINE:
                counts["too_long"] += 1
            else:
                yield turns


def _text_dialogues(path, counts) -> Iterator[list[str]]:
    texts = []
    for line in read_lines(path):
        [text] = decoded([line.text], counts)
        if not is_blank(text):
            texts.append(text)
        elif texts:
            yield texts
            texts = []
    if texts:
        yield texts


def _has_marks(path) -> bool:
    """Whether the first line that is not blank has the marks of turns."""
    lines = (line.text for line in read_lines(path) if not is_blank(line.text))
    return _END in next(lines, b"")


def _marked_dialogues(path, counts) -> Iterator[list[str]]:
    for line in read_lines(path):
        content = line.text
        if not content.strip():
            continue
        counts["marked"] += 1
        if _END_OF_TURN in content:  # of several utterances
            content = content.replace(_END, b" ").replace(_END_OF_TURN, _END)
        # The last mark ends the last turn.
        *turns, rest = content.split(_END)
        yield decoded([*turns, rest] if rest.strip() else turns, counts)


def _dialogues_of_records(path, counts) -> Iterator[list[str]]:
    for line, record in read_records(path, [_TURNS], counts):
        if record is None:
            continue
        turns = record.get(_TURNS)
        if not isinstance(turns, list):
            raise broken(
                line,
                f"the key {_TURNS!r} with a list of strings",
                found=shown_record(line, record),
            )
        for turn in turns:
            if not isinstance(turn, str):
                raise broken(
                    line, "a string for each turn", found=beginning(turn)
                )
        yield [without_surrogates(turn) for turn in turns]
