"""Lines from standard input, as they arrive."""

import contextlib
import fcntl
import os
import select
import stat
import sys
from collections import Counter

from kseq.data.files.reading_problems import invalid_lines
from kseq.data.files.tables import decoded
from kseq.data.files.text_files import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    refuse_utf_16,
)
from kseq.serving.predict_batches import most_at_once
from kseq.terminal import escaped_line, progress
from kseq.user_error import UserError

_BATCHES = 8  # of a chunk, whose lines are sorted by length
_PROBABILITIES = 2**21  # of a chunk, some 200 bytes each


def chunk_size(batch_size, num_classes=0):
    """The number of lines in a chunk: 1,024, or 8,192 where there is a GPU.

    Args:
        batch_size: int or None, the lines of a batch; a chunk has no fewer.
        num_classes: int, whose probabilities an answer has; a chunk has fewer
            lines where they are many.
    """
    most = _PROBABILITIES // max(num_classes, 1)
    return max(min(_BATCHES * most_at_once(), most), batch_size or 1)


def standard_input():
    """The descriptor of standard input; UserError where none can be read."""
    if sys.stdin is not None:
        descriptor = sys.stdin.fileno()
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if mode != os.O_WRONLY:
            return descriptor
    raise UserError(
        "standard input is closed, or is not open for reading; expected lines "
        "of text."
    )


def read_chunks(descriptor, size, is_text=False):
    """Reads lines, split at newlines only.

    A chunk is also yielded when no more input is available yet, so that the
    first answers do not wait for the end of the input. Of a line longer than
    `LONGEST_LINE` only one byte more is kept.

    Args:
        descriptor: int, of a file, pipe or terminal.
        size: int, the largest number of lines in a chunk.
        is_text: bool, whether to say at the end how many lines are not valid
            UTF-8.

    Yields:
        Lists of bytes.

    Raises:
        DataError: if the text is UTF-16 or UTF-32.
    """
    invalid = 0
    for chunk in _chunks(descriptor, size):
        yield chunk
        if is_text:
            invalid += count_invalid(chunk)
    warn_of_invalid("Standard input", invalid)


def count_invalid(lines):
    """How many lines are not valid UTF-8, without those that were cut."""
    counts = Counter()
    for line in lines:
        if len(line) <= LONGEST_LINE:
            decoded([line], counts)
    return counts["invalid"]


def warn_of_invalid(name, count):
    """Says on standard error how many lines of a file are not UTF-8."""
    for problem in invalid_lines(escaped_line(name), count):
        print(problem, file=sys.stderr)


def _chunks(descriptor, size):
    chunk, line = [], b""
    data = os.read(descriptor, LONGEST_LINE)
    refuse_utf_16("Standard input", data.partition(b"\n")[0])
    data = data.removeprefix(BYTE_ORDER_MARK)
    while data:
        *ends, rest = data.split(b"\n")
        for end in ends:
            chunk.append((line + end)[: LONGEST_LINE + 1])
            line = b""
            if len(chunk) == size:
                yield chunk
                chunk = []
        line = (line + rest)[: LONGEST_LINE + 1]
        if chunk and not select.select([descriptor], [], [], 0)[0]:
            yield chunk
            chunk = []
        data = os.read(descriptor, LONGEST_LINE)
    if line:
        chunk.append(line)
    if chunk:
        yield chunk


def counted(chunks, descriptor, description):
    """Shows how many of the lines of a file are done.

    Nothing is shown where answers are.

    Args:
        chunks: iterable of lists of lines, see `read_chunks`.
        descriptor: int, from which they are read. Nothing is shown for a
            terminal, nor for a pipe unless standard error is a terminal.
        description: str, such as "Predicting".

    Yields:
        The chunks.
    """
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    is_watched = sys.stderr.isatty() and not os.isatty(descriptor)
    if sys.stdout.isatty() or not (is_file or is_watched):
        yield from chunks
        return
    total = _lines_left(descriptor) if is_file else None
    with progress(description, total, "lines") as advance:
        for chunk in chunks:
            yield chunk
            advance(len(chunk))


def _lines_left(descriptor):
    """The number of lines of a file that have not been read."""
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    lines, last = 0, b"\n"
    while data := os.pread(descriptor, LONGEST_LINE, position):
        position += len(data)
        lines += data.count(b"\n")
        last = data[-1:]
    return lines + (last != b"\n")


def above_the_answers(description, count):
    """Progress that disappears before answers are shown on a terminal."""
    if sys.stdout.isatty():
        return progress(description, count, "lines")
    return contextlib.nullcontext()


def warn_if_cut(number, truncated, *lines):
    """Says on standard error that a line is too long.

    Args:
        number: int, of the line, from 1.
        truncated: bool, whether the model has cut it.
        *lines: bytes, as `read_chunks` yields them.
    """
    if truncated or max(map(len, lines)) > LONGEST_LINE:
        print(
            f"line {number} is too long; its end was left out.",
            file=sys.stderr,
        )
