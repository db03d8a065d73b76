"""A request that waits for its answer."""

from typing import Any, NamedTuple

_LONG = 4096  # such requests never occupy the last worker
ROWS = 32  # of a call


class WaitingRequest(NamedTuple):
    """A waiting request.

    Args:
        servable: `Servable`.
        signature: str.
        inputs: dict, name -> `np.ndarray`.
        rows: int.
        longest: int, the length of its longest row, see `row_lengths`.
        most: int, bytes that its outputs may have.
        deadline: float, of `time.monotonic`.
        since: float, of `time.monotonic`, when it began to wait.
        continues: bool, whether it continues what has been answered in part.
        future: `concurrent.futures.Future` of its outputs.
    """

    servable: Any
    signature: str
    inputs: dict[str, Any]
    rows: int
    longest: int
    most: int
    deadline: float
    since: float
    continues: bool
    future: Any

    @property
    def key(self):
        """Requests of equal keys may be answered together."""
        sizes = {v.shape[:1] for v in self.inputs.values()}
        if len(sizes) > 1 or not self.servable.adds_rows(self.signature):
            return self.future  # alone
        shapes = tuple(v.shape[1:] for v in self.inputs.values())
        return (
            self.servable,
            self.signature,
            shapes,
            max(self.longest, 16).bit_length(),
        )

    @property
    def is_long(self):
        """Whether it is long, or large and yet answered by one call."""
        return self.longest >= _LONG or self.rows > ROWS

    def succeed(self, outputs):
        """Answers, if a client still waits."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(outputs)

    def fail(self, error):
        """Answers with an error, if a client still waits."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)
