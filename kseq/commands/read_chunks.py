"""Lines from standard input, as they come."""

import os
import select
import sys

from kseq.data.text_files import BYTE_ORDER_MARK, LONGEST_LINE
from kseq.user_error import UserError


def standard_input():
    """The descriptor of standard input; UserError where it is closed."""
    if sys.stdin is None:
        raise UserError("standard input is closed; expected lines of text.")
    return sys.stdin.fileno()


def read_chunks(descriptor, size):
    """Reads lines, split at newlines only.

    What is there is given out when nothing more waits to be read, so that
    the first answers do not wait for the end of the input. Of a line longer
    than `LONGEST_LINE` only one byte more is kept.

    Args:
        descriptor: int, of a file, pipe or terminal.
        size: int, the most lines of a chunk.

    Yields:
        Lists of bytes.
    """
    chunk, line = [], b""
    data = os.read(descriptor, LONGEST_LINE).removeprefix(BYTE_ORDER_MARK)
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
