"""Messages of an Arrow stream, before their buffers are decompressed."""

import struct

_CONTINUES = 2**32 - 1
_DICTIONARY, _BATCH = 2, 3  # types of a message
_LARGEST_BODY = 2**28  # bytes, when it is decompressed
_PER_BYTE = 100
_DAMAGED = "a message is damaged"


def check_next_batch(file):
    """Reads the messages of a stream up to the end of its next batch.

    Args:
        file: `pyarrow.NativeFile`, at the start of a message.

    Raises:
        ValueError: one of them expands too much.
    """
    while message := _message(file):
        kind, batch, body_size = message
        start = file.tell()
        if kind in (_DICTIONARY, _BATCH):
            size = sum(_buffer_sizes(file, batch, start))
            if size > max(_LARGEST_BODY, _PER_BYTE * body_size):
                raise ValueError(f"{body_size} bytes expand to {size}")
        file.seek(start + body_size)
        if kind == _BATCH:
            return


def _message(file):
    """Its type, the table of its batch and the bytes of its body."""
    size = _number(file.read(4), 0, "I")
    if size == _CONTINUES:  # older files lack this mark
        size = _number(file.read(4), 0, "I")
    if not size:
        return None
    if size > file.size() - file.tell():
        raise ValueError(_DAMAGED)
    data = file.read(size)
    message = _Table(data, _number(data, 0, "I"))
    kind, table = message.number(1, "B"), message.table(2)
    if kind == _DICTIONARY:
        table = table.table(1)
    return kind, table, message.number(3, "q")


def _buffer_sizes(file, batch, start):
    """The sizes that compressed buffers have when they are decompressed."""
    if batch is None or batch.table(3) is None:
        return
    for offset, size in batch.pairs(2):
        file.seek(start + offset)
        # -1: it is not compressed.
        yield max(_number(file.read(8), 0, "q"), 0) if size else 0


class _Table:
    """A table of a FlatBuffer: its fields are numbered."""

    def __init__(self, data, position):
        self._data, self._position = data, position
        self._fields = position - _number(data, position, "i")

    def _place(self, field):
        size = _number(self._data, self._fields, "H")
        offset = 4 + 2 * field
        if offset >= size:
            return 0
        offset = _number(self._data, self._fields + offset, "H")
        return offset and self._position + offset

    def _target(self, field):
        place = self._place(field)
        return place and place + _number(self._data, place, "I")

    def number(self, field, kind):
        place = self._place(field)
        return _number(self._data, place, kind) if place else 0

    def table(self, field):
        place = self._target(field)
        return _Table(self._data, place) if place else None

    def pairs(self, field):
        """Pairs of integers of 64 bits."""
        place = self._target(field)
        count = _number(self._data, place, "I") if place else 0
        for start in range(place + 4, place + 4 + 16 * count, 16):
            yield (
                _number(self._data, start, "q"),
                _number(self._data, start + 8, "q"),
            )


def _number(data, place, kind):
    try:
        return struct.unpack_from(f"<{kind}", data, place)[0]
    except struct.error:
        raise ValueError(_DAMAGED) from None
