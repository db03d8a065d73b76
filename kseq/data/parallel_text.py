"""Text and its translation, line by line."""

import dataclasses
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from kseq.data.data_error import DataError
from kseq.data.text_files import (
    LONGEST_LINE,
    Line,
    line_dataset,
    read_lines,
)

_log = logging.getLogger(__name__)


class TextReport(NamedTuple):
    """What `ParallelText.check` counted."""

    pairs: int = 0
    blank: int = 0
    too_long: int = 0
    invalid: int = 0


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Source and target sentences, one pair a line.

    Args:
        source: path of the source, plain or .gz; a pattern names several
            files, read in the order of their names.
        target: path of the target, aligned with the source by line. Without
            it, `source` is a table: source, TAB, target.

    Example:
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, line in (("train.de", "ein Hund"), ("train.en", "a dog")):
    ...     _ = (folder / name).write_text(line)
    >>> ParallelText(folder / "train.de", folder / "train.en").check()
    TextReport(pairs=1, blank=0, too_long=0, invalid=0)
    """

    source: str | os.PathLike
    target: str | os.PathLike | None = None

    def __str__(self):
        return " and ".join(str(path) for path in self._paths())

    def check(self) -> TextReport:
        """Reads everything once and counts what training will leave out.

        Raises:
            DataError: a file cannot be read, the sides differ in length, a
                line does not have two columns, or no pair is left to train
                on.
        """
        counts = Counter()
        for pair in self._pairs_of_lines():
            counts["pairs"] += 1
            counts["invalid"] += not all(_is_utf8(line.text) for line in pair)
            sizes = [len(line.text.strip()) for line in pair]
            if min(sizes) == 0:
                counts["blank"] += 1
            elif max(sizes) > LONGEST_LINE:
                counts["too_long"] += 1
        report = TextReport(**counts)
        self._log(report)
        if report.blank + report.too_long == report.pairs:
            raise DataError(f"{self}: there is no pair to train on.")
        return report

    def source_lines(self) -> Iterator[bytes]:
        """The source alone."""
        return (source.text for source, _ in self._pairs_of_lines())

    def target_lines(self) -> Iterator[bytes]:
        """The target alone."""
        return (target.text for _, target in self._pairs_of_lines())

    def pairs(self) -> tf.data.Dataset:
        """All pairs in order, as scalar strings (source, target)."""
        if self.target is None:
            return line_dataset(self.source).map(_split_columns)
        return tf.data.Dataset.zip(
            line_dataset(self.source), line_dataset(self.target)
        )

    def _paths(self):
        return [path for path in (self.source, self.target) if path is not None]

    def _pairs_of_lines(self) -> Iterator[tuple[Line, Line]]:
        if self.target is None:
            return map(_columns, read_lines(self.source))
        return self._aligned_lines()

    def _aligned_lines(self) -> Iterator[tuple[Line, Line]]:
        sides = [read_lines(path) for path in self._paths()]
        counts = [0, 0]
        for pair in itertools.zip_longest(*sides):
            for side, line in enumerate(pair):
                counts[side] += line is not None
            if None not in pair:
                yield pair
        if counts[0] != counts[1]:
            raise DataError(
                "Source and target must have the same number of lines: "
                f"{self.source} "
                f"has {counts[0]}, {self.target} has {counts[1]}."
            )

    def _log(self, report):
        if left_out := report.blank + report.too_long:
            _log.warning(
                f"{self}: {left_out} of {report.pairs} pairs are left out of "
                f"training: {report.blank} with a blank side, "
                f"{report.too_long} with a line over {LONGEST_LINE} bytes."
            )
        if report.invalid:
            _log.warning(
                f"{self}: {report.invalid} of {report.pairs} pairs are not "
                "valid UTF-8; the wrong bytes become U+FFFD."
            )


def count_overlap(train: ParallelText, held_out: ParallelText) -> int:
    """Counts, and warns of, held-out sources that are also in `train`.

    Holds one number in memory for each line of `held_out`.
    """
    held = Counter(hash(line.strip()) for line in held_out.source_lines())
    lines = (hash(line.strip()) for line in train.source_lines())
    seen = {line for line in lines if line in held}
    overlap = sum(held[line] for line in seen)
    if overlap:
        _log.warning(
            f"{overlap} of {held.total()} sources of {held_out} are also in "
            f"{train}: scores on it will be too good."
        )
    return overlap


def _is_utf8(text) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _columns(line) -> tuple[Line, Line]:
    columns = line.text.split(b"\t") if line.text.strip() else [b"", b""]
    if len(columns) != 2:
        start = line.text[:60].decode(errors="replace")
        raise DataError(
            f"{line}: expected source, TAB, target; found {len(columns)} "
            f"columns in {start!r}"
        )
    return tuple(line._replace(text=column) for column in columns)


def _split_columns(line):
    columns = tf.strings.split(line + "\t", "\t")  # a blank line has two, too
    return columns[0], columns[1]
