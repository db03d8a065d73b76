"""Answers requests that wait together in one call."""

import asyncio
import collections
import concurrent.futures
import threading
import time
from typing import Any, NamedTuple

import numpy as np

from kseq.server.request_error import RequestError
from kseq.server.request_parts import RequestParts
from kseq.server.row_lengths import row_lengths

_ROWS = 32  # of a call
_LENGTH = 32_768  # rows times the longest of them, of a call
_MANY = 4096  # values; to look at each takes a while
_LONG = 4096  # such requests never occupy the last worker


class _Request(NamedTuple):
    """A waiting request.

    Args:
        servable: `Servable`.
        signature: str.
        inputs: dict, name -> `np.ndarray`.
        rows: int.
        longest: int, the length of its longest row, see `row_lengths`.
        deadline: float, of `time.monotonic`.
        since: float, of `time.monotonic`, when it began to wait.
        future: `concurrent.futures.Future` of its outputs.
    """

    servable: Any
    signature: str
    inputs: dict[str, Any]
    rows: int
    longest: int
    deadline: float
    since: float
    future: Any


class Batcher:
    """A thread pool that batches requests where that changes no answer.

    While all threads are busy, requests wait, and those for the same
    signature of the same version, with rows of similar lengths, are then
    answered together. Nothing waits for a thread that is idle. A large
    request is answered in parts, between which the others have their turn.
    One thread is kept for short requests.

    Args:
        queue_size: int, how many requests may wait.
        num_threads: int, at least 2.
        observe: callable of the number of requests in each call.
    """

    def __init__(self, queue_size, num_threads=2, observe=None):
        self.queue_size = queue_size
        self.num_threads = num_threads
        self.observe = observe or (lambda size: None)
        self._queues = collections.OrderedDict()  # key -> deque of requests
        self._waiting = 0
        self._long_ones = 0  # that are being answered
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, servable, signature, inputs, timeout):
        """Puts a request into the queue.

        Args:
            servable: `Servable`.
            signature: str, the name of one of its signatures.
            inputs: dict, name -> `np.ndarray`.
            timeout: float, seconds after which it is not begun any more.

        Returns:
            A `concurrent.futures.Future` of the outputs, a dict. One that is
            cancelled leaves the queue.

        Raises:
            RequestError: if the queue is full.
        """
        deadline = time.monotonic() + timeout
        lengths = row_lengths(inputs)
        can_be_split = servable.adds_rows(signature)
        parts = _parts(lengths) if can_be_split else []

        def put(rows, future):
            """Puts some rows into the queue; None for all."""
            chosen, sizes = inputs, lengths
            if rows is not None:
                chosen = {name: value[rows] for name, value in inputs.items()}
                sizes = lengths[rows]
            self._put(
                _Request(
                    servable,
                    signature,
                    chosen,
                    len(sizes) or 1,
                    int(sizes.max(initial=0)),
                    deadline,
                    time.monotonic(),
                    future,
                )
            )

        future = concurrent.futures.Future()
        with self._changed:
            if self._is_closed:
                raise RequestError("The server is shutting down", "UNAVAILABLE")
            if self._waiting >= self.queue_size:
                raise RequestError(
                    f"The queue is full: {self._waiting} requests wait",
                    "RESOURCE_EXHAUSTED",
                )
            if len(parts) > 1:
                RequestParts(future, parts, put).begin()
            else:
                put(None, future)
        return future

    async def answer(self, servable, signature, inputs, timeout):
        """Awaits the outputs of a request; one that is cancelled is dropped.

        Args and RequestError as of `submit`; that of a deadline, too.

        Returns:
            dict, name -> `np.ndarray`.
        """
        request = (servable, signature, inputs, timeout)
        if max((value.size for value in inputs.values()), default=0) > _MANY:
            future = await asyncio.to_thread(self.submit, *request)
        else:
            future = self.submit(*request)
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RequestError("Timed out", "DEADLINE_EXCEEDED") from None

    @property
    def waiting(self):
        """int, requests in the queue."""
        return self._waiting

    def close(self):
        """Answers what waits, and ends the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _put(self, request):
        key = _key(request)
        with self._changed:
            queue = self._queues.setdefault(key, collections.deque())
            queue.append(request)
            self._waiting += 1
            self._changed.notify()
        request.future.add_done_callback(lambda _: self._forget(key, request))

    def _forget(self, key, request):
        """A request that was cancelled makes room for another one."""
        if not request.future.cancelled():
            return
        with self._changed:
            queue = self._queues.get(key, ())
            for place, other in enumerate(queue):
                if other is request:
                    del queue[place]
                    self._waiting -= 1
                    break
            if not queue:
                self._queues.pop(key, None)

    def _work(self):
        while True:
            with self._changed:
                while not (requests := self._next_batch()):
                    if self._is_closed and not self._waiting:
                        return
                    self._changed.wait()
            self.observe(len(requests))
            try:
                _answer(requests)
            finally:
                with self._changed:
                    self._long_ones -= _is_long(requests[0])
                    self._changed.notify_all()

    def _next_batch(self):
        """Requests of one key, the one that waits longest among them."""
        all_but_one = self._long_ones >= self.num_threads - 1
        ready = [
            key
            for key, queue in self._queues.items()
            if not (all_but_one and _is_long(queue[0]))
        ]
        if not ready:
            return []
        key = min(ready, key=lambda key: self._queues[key][0].since)
        queue, taken, rows = self._queues[key], [], 0
        longest = queue[0].longest
        while queue:
            rows += queue[0].rows
            longest = max(longest, queue[0].longest)
            if taken and (rows > _ROWS or rows * longest > _LENGTH):
                break
            taken.append(queue.popleft())
        if not queue:
            del self._queues[key]
        self._waiting -= len(taken)
        self._long_ones += _is_long(taken[0])
        return taken


def _key(request):
    """Requests of equal keys may be answered together."""
    sizes = {v.shape[:1] for v in request.inputs.values()}
    if len(sizes) > 1 or not request.servable.adds_rows(request.signature):
        return request.future  # alone
    shapes = tuple(v.shape[1:] for v in request.inputs.values())
    return (
        request.servable,
        request.signature,
        shapes,
        max(request.longest, 16).bit_length(),
    )


def _parts(lengths):
    """Arrays of the numbers of rows, of similar lengths, for each call."""
    parts, part = [], []
    for row in np.argsort(lengths, kind="stable"):
        size = len(part) + 1
        if part and (size > _ROWS or size * lengths[row] > _LENGTH):
            parts.append(np.array(part))
            part = []
        part.append(row)
    return [*parts, np.array(part)]


def _is_long(request):
    """Whether it is long, or large and yet answered by one call."""
    return request.longest >= _LONG or request.rows > _ROWS


def _answer(requests):
    """Sets the future of each request."""
    now = time.monotonic()
    begun = []
    for request in requests:
        if not request.future.set_running_or_notify_cancel():
            continue
        if request.deadline < now:
            request.future.set_exception(
                RequestError("Timed out in the queue", "DEADLINE_EXCEEDED")
            )
        else:
            begun.append(request)
    if len(begun) > 1 and _answer_together(begun):
        return
    for request in begun:
        try:
            request.future.set_result(
                request.servable.run(request.signature, request.inputs)
            )
        except Exception as error:  # it is the client's
            request.future.set_exception(error)


def _answer_together(requests):
    """Whether that went well; otherwise each is answered alone."""
    servable, signature, inputs, *_ = requests[0]
    try:
        outputs = servable.run(
            signature,
            {
                name: np.concatenate([r.inputs[name] for r in requests])
                for name in inputs
            },
        )
    except Exception:  # of one of them, which is found when they are alone
        return False
    rows = sum(request.rows for request in requests)
    if any(len(value) != rows for value in outputs.values()):
        return False
    start = 0
    for request in requests:
        rows = slice(start, start := start + request.rows)
        request.future.set_result(
            {name: value[rows] for name, value in outputs.items()}
        )
    return True
