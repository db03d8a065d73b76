"""The JSON of answers, written piece by piece.

`json.dumps` blocks all other threads until it is done, which takes seconds for
millions of numbers.
"""

from kseq.server.json_requests import (
    check_rows,
    classifications,
    json_bytes,
    predictions,
)
from kseq.server.json_tensors import to_values

_AT_ONCE = 8192  # values


def predicted_bytes(outputs, is_row):
    """The answer to `:predict`, see `predictions`, in bytes."""
    if _size(outputs) <= _AT_ONCE:
        return json_bytes(predictions(outputs, is_row))
    if is_row:
        check_rows(outputs)
        return _joined("predictions", _rows(outputs))
    if len(outputs) == 1:
        ((name, value),) = outputs.items()
        return _joined("outputs", _array(name, value))
    return _joined("outputs", _object(outputs))


def classified_bytes(outputs):
    """The answer to `:classify`, see `classifications`, in bytes."""
    blocks = (classifications(block)["results"] for block in _blocks(outputs))
    return _joined("results", _list(map(_inner, blocks)))


def _joined(key, pieces):
    return b"".join([b'{"', key.encode(), b'": ', *pieces, b"}"])


def _rows(outputs):
    """Pieces of a list with a value or an object for each row."""
    if _size(outputs) // _length(outputs) <= _AT_ONCE:
        blocks = (predictions(block, True) for block in _blocks(outputs))
        return _list(_inner(block["predictions"]) for block in blocks)
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
