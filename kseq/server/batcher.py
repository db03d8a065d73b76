"""Answers waiting requests together in one call."""

import asyncio
import collections
import concurrent.futures
import threading
import time

from kseq.server.batch_call import BatchCall, shutting_down
from kseq.server.request_error import RequestError
from kseq.server.request_parts import RequestParts
from kseq.server.row_lengths import row_lengths, similar_rows
from kseq.server.waiting_request import ROWS, WaitingRequest

_LENGTH = 32_768  # rows times the longest of them, of a call
_MANY = 4096  # values; inspecting each takes a while
_WHOLE = 2**22  # rows times the longest, of a call that cannot be split
_ANSWER = 32 * 2**20  # bytes of the outputs of a request,
_TIMES_INPUTS = 32  # plus this number for each byte of its inputs
_STOPPING = 2.0  # seconds for calls that were cancelled


class Batcher:
    """A thread pool that batches requests if that changes no answer.

    While all threads are busy, requests wait, and those for the same signature
    of the same version, with rows of similar lengths, are then answered
    together. If a thread is idle, a request does not wait. A large request is
    answered in parts, and other requests run between them. What continues an
    answer, such as the next part of a stream, and what begins one take turns.
    One thread is reserved for short requests. A call ends when no client waits
    for it any longer.

    Args:
        queue_size: int, how many requests may wait.
        num_threads: int, at least 2.
        observe: callable of the number of requests in each call.
        observe_wait: callable of the seconds that a request has waited.
    """

    def __init__(
        self, queue_size, num_threads=2, observe=None, observe_wait=None
    ):
        self.queue_size = queue_size
        self.num_threads = num_threads
        self.observe = observe or (lambda size: None)
        self.observe_wait = observe_wait or (lambda seconds: None)
        self._queues = collections.OrderedDict()  # key -> deque of requests
        self._waiting = 0
        self._long_ones = 0  # that are being answered
        self._continued = False  # whether the last call continued an answer
        self._calls = []  # `BatchCall`s that are being answered
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_over = False
        self._threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, servable, signature, inputs, timeout, continues=False):
        """Puts a request into the queue.

        Args:
            servable: `Servable`.
            signature: str, the name of one of its signatures.
            inputs: dict, name -> `np.ndarray`.
            timeout: float, seconds after which it is no longer started.
            continues: bool, whether it continues what has been answered in
                part, and may wait even if the queue is full.

        Returns:
            A `concurrent.futures.Future` of the outputs, a dict. Cancelling it
            removes the request from the queue, or ends its call.

        Raises:
            RequestError: if the queue is full.
        """
        deadline = time.monotonic() + timeout
        lengths = row_lengths(inputs)
        size = lengths.sum() + sum(value.nbytes for value in inputs.values())
        most = _ANSWER + _TIMES_INPUTS * int(size)
        is_padded = servable.pads_rows(signature)
        can_be_split = is_padded or servable.adds_rows(signature)
        parts = similar_rows(lengths, ROWS, _LENGTH) if can_be_split else []

        def put(rows, future):
            """Puts some rows into the queue; None for all."""
            chosen, sizes = inputs, lengths
            if rows is not None:
                chosen = {name: value[rows] for name, value in inputs.items()}
                sizes = lengths[rows]
            elif len(parts) != 1 and _is_too_large(lengths):
                future.set_exception(_too_large(lengths))
                return
            self._put(
                WaitingRequest(
                    servable,
                    signature,
                    chosen,
                    len(sizes) or 1,
                    int(sizes.max(initial=0)),
                    most,
                    deadline,
                    time.monotonic(),
                    continues,
                    future,
                )
            )

        future = concurrent.futures.Future()
        with self._changed:
            if self._is_closed:
                raise shutting_down()
            if self._waiting >= self.queue_size and not continues:
                raise RequestError(
                    f"The queue is full: {self._waiting} requests wait",
                    "RESOURCE_EXHAUSTED",
                )
            if len(parts) > 1:
                RequestParts(future, parts, put, most, is_padded).begin()
            else:
                put(None, future)
        return future

    async def answer(
        self, servable, signature, inputs, timeout, continues=False
    ):
        """Awaits the outputs of a request, and drops it if cancelled.

        Args and RequestError as for `submit`; also RequestError at the
        deadline.

        Returns:
            dict, name -> `np.ndarray`.
        """
        request = (servable, signature, inputs, timeout, continues)
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

    def close(self, grace=None):
        """Answers the waiting requests, and ends the threads.

        Args:
            grace: float, seconds until the remaining calls are cancelled; a
                call that cannot be cancelled is then abandoned. None: no limit.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._join(grace)
        if any(thread.is_alive() for thread in self._threads):
            self._cancel_all()
            self._join(_STOPPING)

    def _join(self, seconds):
        end = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            thread.join(end and max(end - time.monotonic(), 0))

    def _cancel_all(self):
        with self._changed:
            self._is_over = True
            waiting = [r for queue in self._queues.values() for r in queue]
            self._queues.clear()
            self._waiting = 0
            calls = list(self._calls)
            self._changed.notify_all()
        for request in waiting:
            request.fail(shutting_down())
        for call in calls:
            call.end()

    def _put(self, request):
        key = request.key
        with self._changed:
            if self._is_over:
                request.fail(shutting_down())
                return
            queue = self._queues.setdefault(key, collections.deque())
            queue.append(request)
            self._waiting += 1
            self._changed.notify()
        request.future.add_done_callback(lambda _: self._forget(key, request))

    def _forget(self, key, request):
        """Removes a cancelled request from the queue."""
        if not request.future.cancelled():
            return
        with self._changed:
            for call in self._calls:
                if any(other is request for other in call.batch):
                    call.cancel_if_nobody_waits()
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
                while not (taken := self._next_batch()):
                    if self._is_closed and not self._waiting:
                        return
                    self._changed.wait()
                call = BatchCall(taken)
                self._calls.append(call)
            self._observe(taken)
            try:
                call.answer()
            finally:
                with self._changed:
                    self._calls.remove(call)
                    self._long_ones -= taken[0].is_long
                    self._changed.notify_all()

    def _observe(self, taken):
        self.observe(len(taken))
        now = time.monotonic()
        for request in taken:
            self.observe_wait(now - request.since)

    def _next_batch(self):
        """Requests of one key, those that have waited longest in their turn."""
        all_but_one = self._long_ones >= self.num_threads - 1
        ready = [
            key
            for key, queue in self._queues.items()
            if not (all_but_one and queue[0].is_long)
        ]
        if not ready:
            return []
        # If new requests came first, each part of a stream would wait for all
        # of them, and streams would be the first to time out.
        turn = [
            key
            for key in ready
            if self._queues[key][0].continues != self._continued
        ]
        key = min(turn or ready, key=lambda key: self._queues[key][0].since)
        queue, taken, rows = self._queues[key], [], 0
        longest = queue[0].longest
        while queue:
            rows += queue[0].rows
            longest = max(longest, queue[0].longest)
            if taken and (rows > ROWS or rows * longest > _LENGTH):
                break
            taken.append(queue.popleft())
        if not queue:
            del self._queues[key]
        self._waiting -= len(taken)
        self._long_ones += taken[0].is_long
        self._continued = taken[0].continues
        return taken


def _is_too_large(lengths):
    return len(lengths) * int(lengths.max(initial=0)) > _WHOLE


def _too_large(lengths):
    return RequestError(
        f"The outputs of this signature cannot be split, and {len(lengths)} "
        f"inputs, the longest of {lengths.max()}, are too large for one call. "
        f"Send at most {_WHOLE // lengths.max()} at once."
    )
