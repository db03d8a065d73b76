"""Lines of an input file, counted on the screen."""

import os
import stat
import sys

from kseq.progress import progress


def counted(chunks, descriptor, description):
    """Shows how many lines of a file are done, unless answers show it.

    Args:
        chunks: iterable of lists of lines, read from `descriptor`.
        descriptor: int. Of a pipe or a terminal, whose lines come one by
            one, nothing is shown.
        description: str, such as "Predicting".

    Yields:
        The chunks.
    """
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if not is_file or sys.stdout.isatty():
        yield from chunks
        return
    with progress(description, unit="lines") as advance:
        for chunk in chunks:
            yield chunk
            advance(len(chunk))
