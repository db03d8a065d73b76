"""Answers to many lines, in their order."""

import tensorflow as tf


def map_lines(function, *columns, batch_size):
    """Calls a function with batches of lines of like length.

    Args:
        function: of (B,) string tensors, one a column; gives a dict of
            tensors (B, ...).
        *columns: lists of bytes or str, of equal length; batches go by the
            length of the first, the longest first.
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
