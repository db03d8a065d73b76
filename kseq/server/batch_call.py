"""One call that answers several requests."""

import time

import numpy as np

from kseq.server.cancellation import Cancellation
from kseq.server.request_error import RequestError
from kseq.server.request_parts import check_size


class BatchCall:
    """Answers requests together, or one after the other if that fails.

    Args:
        batch: list of `WaitingRequest`s of one key.
    """

    def __init__(self, batch):
        self.batch = batch
        self._cancellation = Cancellation()
        self._is_over = False

    def cancel_if_nobody_waits(self):
        """Ends the call if all of its requests are cancelled."""
        if all(request.future.cancelled() for request in self.batch):
            self._cancellation.cancel()

    def end(self):
        """Ends the call; its requests get an error."""
        self._is_over = True
        self._cancellation.cancel()

    def answer(self):
        """Sets the future of each request that has not been cancelled."""
        now = time.monotonic()
        begun = []
        for request in self.batch:
            if request.deadline < now:
                late = "Timed out in the queue"
                request.fail(RequestError(late, "DEADLINE_EXCEEDED"))
            else:
                begun.append(request)
        if len(begun) > 1 and self._answer_together(begun):
            return
        for request in begun:
            if not request.future.cancelled():
                self._answer_alone(request)

    def _answer_alone(self, request):
        try:
            outputs = self._run(request, request.inputs)
            check_size(outputs, request.most)
        except Exception as error:  # the client gets it
            request.fail(shutting_down() if self._is_over else error)
        else:
            request.succeed(outputs)

    def _answer_together(self, batch):
        """Whether this succeeds; otherwise each request is answered alone."""
        try:
            outputs = self._run(
                batch[0],
                {
                    name: np.concatenate([r.inputs[name] for r in batch])
                    for name in batch[0].inputs
                },
            )
        except Exception:  # which request causes it is seen when each is alone
            return False
        rows = sum(request.rows for request in batch)
        if any(len(value) != rows for value in outputs.values()):
            return False
        start = 0
        for request in batch:
            rows = slice(start, start := start + request.rows)
            request.succeed({name: v[rows] for name, v in outputs.items()})
        return True

    def _run(self, request, inputs):
        with self._cancellation.scope():
            return request.servable.run(request.signature, inputs)


def shutting_down():
    """The `RequestError` for a request that is no longer answered."""
    return RequestError("The server is shutting down", "UNAVAILABLE")
