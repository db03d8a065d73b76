"""A large request, answered part by part."""

import concurrent.futures
import functools
import threading

import numpy as np


class RequestParts:
    """Answers parts one after the other, and joins what was answered.

    The parts of one request do not wait all at once: after each of them the
    requests of others have their turn.

    Args:
        future: `concurrent.futures.Future` of the outputs of the request.
        parts: list of arrays of the numbers of its rows.
        put: callable of such numbers, or None for all rows, and of the
            future of their outputs; it begins to answer them.
    """

    def __init__(self, future, parts, put):
        self.future = future
        self.put = put
        self._left = parts[::-1]
        self._answered = []  # (numbers of the rows, their outputs)
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
        if any(len(value) != len(rows) for value in outputs.values()):
            self._ask(None, self._end)
            return
        self._answered.append((rows, outputs))
        if self._left:
            self.begin()
        else:
            self._finish(self._joined)

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
        order = np.argsort(np.concatenate([rows for rows, _ in self._answered]))
        (_, first), *_ = self._answered
        return {
            name: np.concatenate([each[name] for _, each in self._answered])[
                order
            ]
            for name in first
        }
