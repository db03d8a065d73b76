"""The JSON of answers, written piece by piece.

`json.dumps` blocks all other threads until it is done, which takes seconds for
millions of numbers.
"""

import json

from kseq.server.json_tensors import to_values
from kseq.server.request_error import RequestError
from kseq.server.signatures import classes_and_scores

_AT_ONCE = 8192  # values


def predicted_bytes(outputs, is_row):
    """The answer to `:predict`.

    Args:
        outputs: dict, name -> `np.ndarray`.
        is_row: bool, see `SignatureRequest`.

    Returns:
        bytes of JSON.

    Raises:
        RequestError: if the outputs do not fit into this form.
    """
    if is_row:
        _check_rows(outputs)
        return _joined("predictions", _rows(outputs))
    if len(outputs) == 1:
        ((name, value),) = outputs.items()
        return _joined("outputs", _array(name, value))
    return _joined("outputs", _object(outputs))


def classified_bytes(outputs):
    """The answer to `:classify`.

    Args:
        outputs: dict with `classes`, `scores` or both, (B, C).

    Returns:
        bytes of JSON.
    """
    blocks = map(_classifications, _blocks(outputs))
    return _joined("results", _list(map(_inner, blocks)))


def json_bytes(value):
    """JSON, with NaN and infinities as TensorFlow Serving writes them."""
    return json.dumps(value, ensure_ascii=False).encode()


def _check_rows(outputs):
    """RequestError unless outputs have the same number of rows."""
    sizes = {name: value.shape[:1] for name, value in outputs.items()}
    expected = next(iter(sizes.values()))
    for name, size in sizes.items():
        if not size or size != expected:
            raise RequestError(
                f"Tensor name: {name} has inconsistent batch size: "
                f"{(*size, 0)[0]} expecting batch size: "
                f"{(*expected, 0)[0]}"
            )


def _predictions(outputs):
    """A list with a value or an object for each row."""
    values = {name: to_values(name, value) for name, value in outputs.items()}
    if len(values) == 1:
        return next(iter(values.values()))
    rows = zip(*values.values(), strict=True)
    return [dict(zip(values, row, strict=True)) for row in rows]


def _classifications(outputs):
    """For each row, a list of pairs of a class and its score."""
    classes, scores = (
        to_values(name, value)
        for name, value in zip(
            ("classes", "scores"), classes_and_scores(outputs), strict=True
        )
    )
    rows = zip(classes, scores, strict=True)
    return [list(map(list, zip(*row, strict=True))) for row in rows]


def _joined(key, pieces):
    return b"".join([b'{"', key.encode(), b'": ', *pieces, b"}"])


def _rows(outputs):
    """Pieces of a list with a value or an object for each row."""
    if _size(outputs) // max(_length(outputs), 1) <= _AT_ONCE:
        return _list(_inner(_predictions(each)) for each in _blocks(outputs))
    rows = (
        {name: value[row, ...] for name, value in outputs.items()}
        for row in range(_length(outputs))
    )
    if len(outputs) == 1:
        (name,) = outputs
        return _list_of(_array(name, row[name]) for row in rows)
    return _list_of(map(_object, rows))


def _object(arrays):
    """Pieces of an object of named arrays."""
    yield b"{"
    for number, (name, array) in enumerate(arrays.items()):
        yield b", " * (number > 0) + json_bytes(name) + b": "
        yield from _array(name, array)
    yield b"}"


def _array(name, array):
    """Pieces of nested lists."""
    if array.size <= _AT_ONCE:
        return [json_bytes(to_values(name, array))]
    if array.size // len(array) > _AT_ONCE:
        return _list_of(_array(name, row) for row in array)
    blocks = (block[name] for block in _blocks({name: array}))
    return _list(_inner(to_values(name, block)) for block in blocks)


def _blocks(outputs):
    """The same outputs of some rows at a time."""
    length = _length(outputs)
    rows = max(_AT_ONCE * length // max(_size(outputs), 1), 1)
    for start in range(0, length, rows):
        yield {n: value[start : start + rows] for n, value in outputs.items()}


def _list(inner):
    """Pieces of a list from what is between brackets."""
    return _list_of([each] for each in inner)


def _list_of(items):
    """Pieces of a list from the pieces of its items."""
    yield b"["
    for number, pieces in enumerate(items):
        if number:
            yield b", "
        yield from pieces
    yield b"]"


def _inner(values):
    """The JSON of a list without its brackets."""
    return json_bytes(values)[1:-1]


def _length(outputs):
    return len(next(iter(outputs.values())))


def _size(outputs):
    return sum(value.size for value in outputs.values())
