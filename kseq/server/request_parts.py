"""A large request, answered part by part."""

import concurrent.futures
import functools
import math
import threading

import numpy as np

from kseq.server.request_error import RequestError


class RequestParts:
    """Answers parts one after the other, and joins their outputs.

    The parts of one request do not wait all at once, so that other requests run
    between them. If rows are padded, the last part, that of the longest rows,
    is answered first: it shows how large the answer is.

    Args:
        future: `concurrent.futures.Future` of the outputs of the request.
        parts: list of arrays of the numbers of its rows.
        put: callable of such numbers, or None for all rows, and of the future
            of their outputs; it submits them.
        limit: int, bytes that the outputs may have together.
        is_padded: bool, whether outputs are padded to the longest row, with
            "" and 0.
    """

    def __init__(self, future, parts, put, limit, is_padded):
        self.future = future
        self.put = put
        self.limit = limit
        self.is_padded = is_padded
        self._rows = sum(map(len, parts))
        self._left = list(parts) if is_padded else parts[::-1]
        self._answered = []  # (numbers of the rows, their outputs)
        self._shapes = {}  # name -> of a row of the joined output
        self._string_bytes = 0
        self._lock = threading.Lock()
        self._asked = None
        future.add_done_callback(self._cancel)

    def begin(self):
        """Begins with the next part."""
        rows = self._left.pop()
        self._ask(rows, functools.partial(self._take, rows))

    def _ask(self, rows, then):
        asked = concurrent.futures.Future()
        asked.add_done_callback(then)
        with self._lock:
            self._asked = asked
        self.put(rows, asked)
        if self.future.cancelled():
            asked.cancel()

    def _cancel(self, future):
        with self._lock:
            asked = self._asked
        if future.cancelled() and asked is not None:
            asked.cancel()

    def _take(self, rows, part):
        if part.cancelled() or self.future.cancelled():
            return
        if part.exception():
            self._end(part)
            return
        outputs = part.result()
        if not self._fit(rows, outputs):
            self._ask(None, self._end)
            return
        self._answered.append((rows, outputs))
        if self._joined_bytes(outputs) > self.limit:
            self._answered.clear()
            self._finish(functools.partial(_refuse, self.limit))
        elif self._left:
            self.begin()
        else:
            self._finish(self._joined)

    def _fit(self, rows, outputs):
        """Whether they can be joined with those of the parts before."""
        for name, value in outputs.items():
            if value.ndim == 0 or len(value) != len(rows):
                return False
            shape = value.shape[1:]
            before = self._shapes.setdefault(name, shape)
            if len(before) != len(shape):
                return False
            if before != shape and not self.is_padded:
                return False
            self._shapes[name] = tuple(map(max, before, shape))
        return True

    def _joined_bytes(self, outputs):
        """A lower bound of the bytes of all outputs when they are joined."""
        self._string_bytes += sum(map(_string_bytes, outputs.values()))
        return self._string_bytes + sum(
            self._rows * math.prod(self._shapes[name]) * value.itemsize
            for name, value in outputs.items()
        )

    def _end(self, asked):
        if not asked.cancelled():
            self._finish(asked.result)

    def _finish(self, outputs):
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(outputs())
        except Exception as error:  # that of a part
            self.future.set_exception(error)

    def _joined(self):
        (_, first), *_ = self._answered
        joined = {}
        for name, value in first.items():
            empty = b"" if value.dtype == object else 0
            shape = (self._rows, *self._shapes[name])
            joined[name] = np.full(shape, empty, value.dtype)
        for rows, outputs in self._answered:
            for name, value in outputs.items():
                places = tuple(map(slice, value.shape[1:]))
                joined[name][(rows, *places)] = value
        return joined


def check_size(outputs, limit):
    """RequestError if outputs have too many bytes.

    Args:
        outputs: dict, name -> `np.ndarray`.
        limit: int, bytes.
    """
    size = sum(
        value.nbytes + _string_bytes(value) for value in outputs.values()
    )
    if size > limit:
        _refuse(limit)


def _string_bytes(array):
    return sum(map(len, array.ravel())) if array.dtype == object else 0


def _refuse(limit):
    raise RequestError(
        f"The answer has more than {limit} bytes: send fewer inputs at once, "
        "or, where outputs are padded, inputs of similar lengths"
    )
