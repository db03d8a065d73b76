"""Answers to many inputs, in their order."""

import tensorflow as tf


def predict_batches(function, columns, batch_size, progress=None):
    """Calls a function with batches of inputs of similar length.

    Args:
        function: of (B,) string tensors by keyword; gives a dict of tensors
            (B, ...).
        columns: dict, name -> list of bytes or str, all of the same length;
            batches go by the length of the first, the longest first.
        batch_size: int.
        progress: callable of the number of inputs done and of all, or None.

    Returns:
        A list with a dict of arrays for each input, in the order of the
        inputs.
    """
    first = next(iter(columns.values()))
    order = sorted(range(len(first)), key=lambda i: -len(first[i]))
    results = [None] * len(order)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        batch = {
            name: tf.constant([values[i] for i in places], tf.string)
            for name, values in columns.items()
        }
        outputs = {k: v.numpy() for k, v in function(**batch).items()}
        for row, place in enumerate(places):
            results[place] = {k: v[row] for k, v in outputs.items()}
        if progress is not None:
            progress(start + len(places), len(order))
    return results
