"""Files of dialogues, read without TensorFlow."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from kseq.data.data_error import DataError
from kseq.data.tables import (
    beginning,
    broken,
    json_object,
    kind_of,
    without_surrogates,
)
from kseq.data.text_files import LONGEST_LINE, Line, matching_files, read_lines

_TURNS = "turns"


def dialogues_of_files(
    pattern: str | os.PathLike, counts: Counter
) -> Iterator[list[str]]:
    """The turns of each dialogue.

    A .jsonl or .json file has an object with `turns`, a list of strings, in
    each line. Any other file is a text: one turn per line, a blank line between
    dialogues. All of them can be .gz.

    White space of all kinds inside a turn is one space. Blank turns are left
    out, as are dialogues of fewer than two turns or with a turn over 64 KiB.

    Args:
        pattern: path; a pattern names several files.
        counts: gets the numbers of turns that are `blank` or `invalid` UTF-8,
            and of dialogues that are `short` or `too_long`.

    Raises:
        DataError: a file cannot be read, or a line is broken.
    """
    for path in matching_files(pattern):
        kind = kind_of(path)
        if kind in ("tsv", "csv"):
            raise DataError(
                f"{path}: expected JSON lines with {_TURNS!r} (.jsonl), or a "
                "text with a blank line between dialogues; found the name of "
                "a table."
            )
        lines = read_lines(path)
        read = _json_dialogues if kind == "json" else _text_dialogues
        for texts in read(lines, counts):
            turns = [" ".join(text.split()) for text in texts]
            counts["blank"] += turns.count("")
            turns = [turn for turn in turns if turn]
            if len(turns) < 2:
                counts["short"] += 1
            elif max(len(turn.encode()) for turn in turns) > LONGEST_LINE:
                counts["too_long"] += 1
            else:
                yield turns


def _text_dialogues(lines: Iterable[Line], counts) -> Iterator[list[str]]:
    texts = []
    for line in lines:
        text = _decoded(line.text, counts)
        if text.strip():
            texts.append(text)
        elif texts:
            yield texts
            texts = []
    if texts:
        yield texts


def _json_dialogues(lines: Iterable[Line], counts) -> Iterator[list[str]]:
    for line in lines:
        if not line.text.strip():
            continue
        _decoded(line.text, counts)
        turns = json_object(line).get(_TURNS)
        if not isinstance(turns, list):
            raise broken(
                line,
                f"the key {_TURNS!r} with a list of strings",
                found=beginning(line.text),
            )
        for turn in turns:
            if not isinstance(turn, str):
                raise broken(
                    line, "a string for each turn", found=beginning(turn)
                )
        yield [without_surrogates(turn) for turn in turns]


def _decoded(text, counts) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        counts["invalid"] += 1
        return text.decode(errors="replace")
