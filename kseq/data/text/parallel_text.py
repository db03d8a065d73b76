"""Text and its translation, line by line."""

import dataclasses
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.corpora import log_problems
from kseq.data.files.data_error import DataError
from kseq.data.files.dataset_options import pairs_of_blocks
from kseq.data.files.tables import kind_of, notes_on
from kseq.data.files.text_files import Line, matching_files, read_lines
from kseq.data.text.pair_blocks import (
    PAIRS_OF_BLOCK,
    Block,
    pair_hashes,
    usable_pairs,
)
from kseq.data.text.pair_table import PairTable
from kseq.data.text.text_report import TextReport


class ExaminedText(NamedTuple):
    """A report, and a number for each pair that is used.

    Args:
        report: TextReport.
        sources: (N,) int64, the same for the same source.
        pairs: (N,) int64, the same for the same pair.
    """

    report: TextReport
    sources: np.ndarray
    pairs: np.ndarray


@dataclasses.dataclass(frozen=True)
class ParallelText:
    r"""Source and target sentences, one pair per line.

    Args:
        source: path of the source, plain or compressed (.gz, .bz2, .xz, .zst);
            a pattern names several files, read in the order of their names.
        target: path of the target, aligned with the source by line. Without
            it, `source` is a table: .csv, .jsonl, .json, .parquet, or a TSV,
            all but Parquet may be compressed. In JSON and Parquet a list of
            strings is one source, or several targets, each of which makes a
            pair.
        columns: the source and the target of a table, by the names in its
            first row or its keys, or as numbers from "1". Without them a
            table has a row of names, `source` and `target`, or two columns.
            A third is that of the alignments of words, see `prepare_pairs`.

    Example:
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, line in (("train.de", "ein Hund"), ("train.en", "a dog")):
    ...     _ = (folder / name).write_text(line)
    >>> ParallelText(folder / "train.de", folder / "train.en").check()
    TextReport(pairs=1, blank=0, too_long=0, invalid=0, joined=0)

    >>> _ = (folder / "a.csv").write_text('id,en,de\n1,"Go, go!",Los!')
    >>> text = ParallelText(folder / "a.csv", columns=("de", "en"))
    >>> [(s.decode(), t.decode()) for s, t in text.pairs().as_numpy_iterator()]
    [('Los!', 'Go, go!')]
    """

    source: str | os.PathLike
    target: str | os.PathLike | None = None
    columns: tuple[str, ...] = ()

    def __str__(self):
        return " and ".join(str(path) for path in self._paths())

    def files(self) -> list[list[str]]:
        """The files of a table, or of the source and of the target.

        Raises:
            DataError: a path cannot be read.
        """
        return [matching_files(path) for path in self._paths()]

    def check(self) -> TextReport:
        """Reads everything once; warns of text that is changed.

        Raises:
            DataError: a file cannot be read, the sides differ in length, a
                line does not have the columns, or no pair is left.
        """
        report = self.examine().report
        log_problems(self.notes() + report.problems(self, of_left_out=False))
        return report

    def notes(self) -> list[str]:
        """What is unusual about tables, one line per note."""
        return notes_on(self.source) if self.target is None else []

    def examine(self) -> ExaminedText:
        """Does the same as `check` without warnings, and numbers the pairs.

        Holds 16 bytes a pair in memory.
        """
        counts = Counter()
        sources, pairs = [], []
        for block in self.usable_blocks(counts):
            hashes = pair_hashes(*block[:2])
            sources.append(hashes[0])
            pairs.append(hashes[1])
        report = TextReport.of(counts)
        report.refuse_empty(self)
        return ExaminedText(
            report, np.concatenate(sources), np.concatenate(pairs)
        )

    def count(self) -> TextReport:
        """Reads everything once and counts it, without warnings."""
        counts = Counter()
        for _ in self.usable_blocks(counts):
            pass
        return TextReport.of(counts)

    def usable_blocks(
        self, counts: Counter, path: str | None = None, with_blank: bool = False
    ) -> Iterator[Block]:
        """Sides of usable pairs, about a thousand at a time.

        Args:
            counts: counts them, see `TextReport`.
            path: of one of the files of a table; by default all are read.
            with_blank: see `usable_pairs`.
        """
        rows = self._pairs_of_lines(counts)
        if path is not None:
            rows = self._table.rows_of(path, counts)
        while block := list(itertools.islice(rows, PAIRS_OF_BLOCK)):
            counts["joined"] += sum(
                source.is_joined or target.is_joined
                for source, target, *_ in block
            )
            sides = zip(*block, strict=True)
            texts = [[line.text for line in side] for side in sides]
            yield usable_pairs(*texts, counts=counts, with_blank=with_blank)

    def source_lines(self) -> Iterator[bytes]:
        """The source alone, with what `pairs` leaves out."""
        return (source.text for source, *_ in self._pairs_of_lines())

    def target_lines(self) -> Iterator[bytes]:
        """The target alone, with what `pairs` leaves out."""
        return (target.text for _, target, *_ in self._pairs_of_lines())

    def pairs(self, where: Callable | None = None) -> tf.data.Dataset:
        """The usable pairs in order, as scalar strings (source, target).

        Those with a blank side or a very long line are left out.

        Args:
            where: function, B sources -> (B,) bool, which pairs are wanted; by
                default all.
        """

        def blocks():
            for sides in self.usable_blocks(Counter()):
                if where is not None:
                    kept = where(sides[0])
                    sides = [
                        list(itertools.compress(side, kept)) for side in sides
                    ]
                yield sides

        return self._dataset(blocks)

    def all_pairs(self) -> tf.data.Dataset:
        """The same, including pairs with a blank side, for evaluation."""
        return self._dataset(
            lambda: self.usable_blocks(Counter(), with_blank=True)
        )

    def _dataset(self, blocks):
        next(self._pairs_of_lines(), None)  # raises an error if it is no text
        return pairs_of_blocks(lambda: (tuple(sides[:2]) for sides in blocks()))

    @property
    def _table(self) -> PairTable:
        return PairTable(self.source, self.columns)

    def _paths(self):
        return [path for path in (self.source, self.target) if path is not None]

    def _pairs_of_lines(self, counts=None) -> Iterator[tuple[Line, ...]]:
        if self.target is None:
            return self._table.rows(counts)
        return self._aligned_lines()

    def _aligned_lines(self) -> Iterator[tuple[Line, Line]]:
        sides = [read_lines(path) for path in self._paths()]
        counts = [0, 0]
        for pair in itertools.zip_longest(*sides):
            for side, line in enumerate(pair):
                counts[side] += line is not None
            if None not in pair:
                yield pair
        self.refuse_unequal(*counts)

    def refuse_unequal(self, sources: int, targets: int):
        """Raises DataError if two files differ in their numbers of lines."""
        if sources != targets:
            raise DataError(
                "Source and target must have the same number of lines: "
                f"{self.source} "
                f"has {sources}, {self.target} has {targets}."
            )


def parallel_texts(option, paths, columns) -> tuple[ParallelText, ...]:
    """Makes one text of each table, and of each source and its target.

    `option` is what the paths are, for messages.

    Raises:
        DataError: a path is empty, or a source has no target.
    """
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not paths or not all(map(os.fspath, paths)):
        raise DataError(
            f"{option} expects paths; found "
            f"{'an empty one' if paths else 'none'}. Is a shell variable unset?"
        )
    columns = tuple(columns)
    if len(paths) == 1:
        return (ParallelText(*paths, columns=columns),)
    texts = []
    rest = iter(paths)
    for path in rest:
        if kind_of(path):
            texts.append(ParallelText(path, columns=columns))
            continue
        target = next(rest, None)
        if target is None or kind_of(target):
            raise DataError(
                f"{option} takes tables (.tsv, .csv, .jsonl), or a source "
                f"followed by its target; {path} has no target. Received: "
                f"{', '.join(map(str, paths))}"
            )
        texts.append(ParallelText(path, target))
    return tuple(texts)


def texts_of_splits(train, validation, columns):
    """The texts of training, and those of validation, which may be none.

    Raises:
        DataError: see `parallel_texts` and `check_pair_columns`, or a path
            cannot be read.
    """
    texts = parallel_texts("train", train, columns)
    others = ()
    if validation is not None:
        others = parallel_texts("validation", validation, columns[:2])
    check_pair_columns(columns, texts + others, at_most=3)
    if len(columns) > 2:
        for text in texts:
            if text.target is not None:
                raise DataError(
                    f"Alignments are a column of a table; {text} are two "
                    "files. Join all three: paste SOURCE TARGET ALIGNMENTS > "
                    "FILE.tsv"
                )
    for text in texts + others:
        text.files()  # raises an error where there are none
    return texts, others


def check_pair_columns(columns, texts, at_most=2):
    """Raises DataError unless columns are two, and there is a table.

    There may be none; `at_most` is 3 where one of alignments may be added.
    """
    if not columns:
        return
    if (
        isinstance(columns, str)
        or not 2 <= len({*columns}) == len(columns) <= at_most
        or not all(columns)
    ):
        alignment = ", and perhaps that of alignments" * (at_most > 2)
        raise DataError(
            "columns takes two different names or numbers, the source's and "
            f"the target's{alignment}. Received: {columns!r}"
        )
    if all(text.target is not None for text in texts):
        raise DataError(
            f"columns is for tables; {texts[0]} are two files, source and "
            "target; swap them to change the direction."
        )
