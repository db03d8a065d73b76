"""Answers to many inputs, in their order."""

import numpy as np
import tensorflow as tf

from kseq.user_error import UserError


def predict_batches(signatures, name, columns, batch_size, progress=None):
    """Calls a signature with batches of inputs of similar length.

    Args:
        signatures: dict of functions of (B, ...) tensors by keyword, which
            give dicts of tensors (B, ...).
        name: of the signature.
        columns: dict, name -> list of bytes, str, lists of str or float
            arrays, all of the same length; inputs are sorted by the length in
            the first column.
        batch_size: int.
        progress: callable of the number of inputs done since its last call,
            see `kseq.progress`; or None.

    Returns:
        A list with a dict of arrays for each input, in the order of the
        inputs.

    Raises:
        UserError: if there is no such signature.
        ValueError: if the columns are not lists of the same length.
    """
    if name not in signatures:
        raise UserError(
            f"This model has no signature {name}; it has "
            f"{', '.join(sorted(signatures))}."
        )
    function = signatures[name]
    first = next(iter(columns.values()))
    for key, values in columns.items():
        if isinstance(values, str | bytes) or len(values) != len(first):
            raise ValueError(
                f"{key} must be a list, as long as that of the inputs. "
                f"Received: {key}={values!r:.200}"
            )
    order = sorted(range(len(first)), key=lambda i: -_length(first[i]))
    results = [None] * len(order)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        batch = {
            name: _tensor([values[i] for i in places])
            for name, values in columns.items()
        }
        outputs = {k: v.numpy() for k, v in function(**batch).items()}
        for row, place in enumerate(places):
            results[place] = {k: v[row] for k, v in outputs.items()}
        if progress is not None:
            progress(len(places))
    return results


def _length(value):
    if isinstance(value, list):
        return sum(map(len, value))
    return len(value)


def _tensor(values):
    if isinstance(values[0], list):
        most = max(1, *map(len, values))
        padded = [[*texts, *[""] * (most - len(texts))] for texts in values]
        return tf.constant(padded, tf.string)
    if isinstance(values[0], str | bytes):
        return tf.constant(values, tf.string)
    if len({len(value) for value in values}) == 1:
        return tf.constant(np.stack(values), tf.float32)
    # What is not finite is padding.
    longest = max(map(len, values))
    padded = np.full((len(values), longest, *values[0].shape[1:]), np.nan)
    for row, value in zip(padded, values, strict=True):
        row[: len(value)] = value
    return tf.constant(padded, tf.float32)
