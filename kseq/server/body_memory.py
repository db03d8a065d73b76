"""A limit on the memory of all requests and their answers."""

import collections
import contextlib

from kseq.server.request_error import RequestError

_SHARE = 4  # for the large requests of a client, and reserved for small ones
_SMALL = 64 * 1024  # bytes of a request that never waits for large ones


def request_memory(body_limit):
    """Bytes that all requests may take, for a limit of one of them."""
    return max(16 * body_limit, 512 * 2**20)


class BodyMemory:
    """Counts the bytes of all requests that are read or wait.

    A quarter is reserved for small requests. The large requests of one client
    share a quarter; a single request may take more.

    Args:
        limit: int, bytes.

    Attributes:
        held: int, bytes that are held now.
        refused: int, bytes that were refused so far.
    """

    def __init__(self, limit):
        self.limit = limit
        self.held = 0
        self.refused = 0
        self._of_clients = collections.Counter()  # bytes of large requests

    @contextlib.contextmanager
    def hold(self, client=None):
        """Yields a function that adds bytes, which are held until the end.

        It raises a `RequestError` if there is no room for them.

        Args:
            client: hashable, such as an address; None if it is not known.
        """
        mine = 0

        def add(size):
            nonlocal mine
            if not self._has_room(client, mine, size):
                self.refused += size
                raise RequestError(
                    f"The requests that are being answered have "
                    f"{self.held} bytes; there is no room for {size} more",
                    "RESOURCE_EXHAUSTED",
                )
            self._count(client, mine, -1)
            mine += size
            self._count(client, mine, 1)

        try:
            yield add
        finally:
            self._count(client, mine, -1)

    def _has_room(self, client, mine, size):
        if self._is_small(mine + size):
            return self.held + size <= self.limit
        share = self.limit // _SHARE
        others = self._of_clients[client] - mine * (not self._is_small(mine))
        is_alone = client is None or not others
        return self.held + size <= self.limit - share and (
            is_alone or others + mine + size <= share
        )

    def _count(self, client, size, sign):
        self.held += sign * size
        if client is not None and not self._is_small(size):
            self._of_clients[client] += sign * size
            if not self._of_clients[client]:
                del self._of_clients[client]

    def _is_small(self, size):
        return size <= min(_SMALL, self.limit // 64)
