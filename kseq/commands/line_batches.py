"""Lines from standard input as they come, and answers in their order."""

import os
import select

import tensorflow as tf

LONGEST_LINE = 65_536  # bytes
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    data = os.read(descriptor, LONGEST_LINE).removeprefix(_BYTE_ORDER_MARK)
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


def map_lines(function, *columns, batch_size):
    """Calls a function with batches of lines of like length.

    Args:
        function: of (B,) string tensors, one a column; gives a dict of
            tensors (B, ...).
        *columns: lists of bytes, of equal length; batches go by the length
            of the first.
        batch_size: int.

    Returns:
        A list with a dict of arrays for each line, in the order of the lines.
    """
    order = sorted(range(len(columns[0])), key=lambda i: -len(columns[0][i]))
    results = [None] * len(order)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        batch = [tf.constant([lines[i] for i in places]) for lines in columns]
        outputs = {k: v.numpy() for k, v in function(*batch).items()}
        for row, place in enumerate(places):
            results[place] = {k: v[row] for k, v in outputs.items()}
    return results
