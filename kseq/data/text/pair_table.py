"""Pairs of texts in a table."""

import dataclasses
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator

from kseq.data.files.records import (
    has_keys,
    has_records,
    listed_keys,
    read_records,
    value_at,
    without_surrogates,
)
from kseq.data.files.tables import (
    Layout,
    are_numbers,
    ask_for_columns,
    beginning,
    broken,
    check_width,
    find_columns,
    is_header,
    kind_of,
    names_of,
    rows_of_cells,
)
from kseq.data.files.text_files import Line, matching_files
from kseq.data.text.alignments import check_alignment

_DEFAULT = ("source", "target")
_LINE_ENDS = re.compile(rb"\r?\n|\t")


@dataclasses.dataclass(frozen=True)
class PairTable:
    """The pairs of a table; see `ParallelText`.

    Args:
        path: of a table; a pattern names several.
        columns: of source and target, and perhaps of their alignments.
    """

    path: str | os.PathLike
    columns: tuple[str, ...] = ()

    def rows(self, counts: Counter | None = None) -> Iterator[tuple[Line, ...]]:
        """The pairs in order, including those of blank rows.

        With a column of alignments, each pair has a third text. Lines of JSON
        that are `invalid` UTF-8 are counted; a cell is returned as it is.

        Raises:
            DataError: a table is broken or does not have the columns, or an
                alignment is none of these words.
        """
        for path in matching_files(self.path):
            yield from self.rows_of(path, counts)

    def rows_of(
        self, path: str, counts: Counter | None = None
    ) -> Iterator[tuple[Line, ...]]:
        """The same for one file."""
        if has_records(path):
            records = read_records(path, self.columns or _DEFAULT, counts)
            return itertools.chain.from_iterable(
                itertools.starmap(self._of_record, records)
            )
        return self._of_cells(rows_of_cells(path), kind_of(path) or "tsv")

    def _of_record(self, line, record):
        """The pairs of an object: one, or one for each of its targets."""
        columns = self.columns or _DEFAULT
        if record is None:
            return [self._blank(line)]
        if not has_keys(record, columns):
            hint = "" if self.columns else "; choose two with --columns"
            raise broken(
                line,
                f"the keys {' and '.join(map(repr, columns))}",
                found=f"{listed_keys(record)}{hint}",
            )
        sources, *others = (_texts(line, record, key) for key in columns)
        targets, alignments = others[0], others[-1]
        if len(alignments) != len(targets):
            raise broken(
                line,
                f"an alignment for each of {len(targets)} targets",
                found=str(len(alignments)),
            )
        source = b" ".join(sources)
        rows = zip(*others, strict=True) if targets else [[b""] * len(others)]
        return [_pair(line, source, *row) for row in rows]

    def _of_cells(self, rows, kind):
        layout, width, blank = None, 0, []
        for line, cells in rows:
            if layout is None and not cells:
                blank.append(line)  # or part of what is skipped
                continue
            if layout is None:
                layout, width = self._layout(line, cells, kind), len(cells)
                if layout.is_header:
                    continue
                yield from map(self._blank, blank)
            check_width(line, cells, width)
            cells = cells or [b""] * width
            yield _pair(line, *(cells[place] for place in layout.positions))
        if layout is None:
            yield from map(self._blank, blank)

    def _blank(self, line):
        return _pair(line, *[b""] * len(self.columns or _DEFAULT))

    def _layout(self, line, cells, kind) -> Layout:
        if self.columns:
            positions = find_columns(line, cells, self.columns)
            return Layout(positions, not are_numbers(self.columns))
        if set(_DEFAULT) <= set(names_of(cells)):
            return Layout(find_columns(line, cells, _DEFAULT), True)
        if len(cells) < 2:
            between = ", a comma, " if kind == "csv" else ", TAB, "
            raise broken(
                line,
                f"source{between}target",
                found=f"1 column in {beginning(line.text)}{_hint(line, kind)}",
            )
        if len(cells) > 2 or is_header(cells):
            raise ask_for_columns(line, cells, "two columns without names")
        return Layout((0, 1), False)


def _texts(line, record, key) -> list[bytes]:
    """The string at a key, or the strings of a list."""
    found = value_at(record, key)
    texts = found if isinstance(found, list) else [found]
    if not all(isinstance(text, str) for text in texts):
        raise broken(
            line,
            f"a string at {key!r}, or a list of strings",
            found=beginning(found),
        )
    return [without_surrogates(text).encode() for text in texts]


def _pair(line, source, target, *alignment) -> tuple[Line, ...]:
    for links in alignment:
        check_alignment(line, links, source, target)
    return tuple(
        line._replace(
            text=_LINE_ENDS.sub(b" ", text),
            is_joined=_LINE_ENDS.search(text) is not None,
        )
        for text in (source, target, *alignment)
    )


def _hint(line, kind) -> str:
    for sign, name in ((b",", "commas"), (b";", "semicolons")):
        if kind == "tsv" and sign in line.text:
            return f". Columns between {name} need a name that ends in .csv"
    if kind == "csv" and b"\t" in line.text:
        return ". Columns between tabs need a name that ends in .tsv"
    return ""
