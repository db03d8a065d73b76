"""Memory that the bodies of requests may take together."""

import contextlib

from kseq.server.request_error import RequestError


class BodyMemory:
    """Counts the bytes of all requests that are read or wait.

    Args:
        limit: int, bytes.

    Attributes:
        held: int, bytes now.
    """

    def __init__(self, limit):
        self.limit = limit
        self.held = 0

    @contextlib.contextmanager
    def hold(self):
        """Yields a function that adds bytes, which are held until the end.

        It raises a `RequestError` if there is no room for them.
        """
        mine = 0

        def add(size):
            nonlocal mine
            if self.held + size > self.limit:
                raise RequestError(
                    f"The requests that are being answered have "
                    f"{self.held} bytes; there is no room for {size} more",
                    "RESOURCE_EXHAUSTED",
                )
            self.held += size
            mine += size

        try:
            yield add
        finally:
            self.held -= mine
