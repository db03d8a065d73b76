"""The connections of the HTTP server."""

import collections
import time

import h11
from starlette.responses import Response
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from kseq.server.access_record import (
    MALFORMED,
    access_record,
    request_id_of,
)

_FULL = b'{"error": "Too many connections"}'
_PATIENCE = 20.0  # seconds
_LEAST = 64 * 1024  # bytes of an answer that a client reads in this time
_HALF_CLOSED = 1.0  # seconds
_CONNECTIONS = 512  # the usual limit of open files is 1024


class HttpProtocol(H11Protocol):
    """Closes connections that clients only occupy.

    Uvicorn closes a connection that is idle between two requests. This protocol
    checks each connection every 20 seconds, and closes it if the client has not
    finished the headers of a request since the last check, is still sending a
    body that has been answered, or has not read 64 KiB of its answer. A client
    that closes its side of the connection after a complete request has either
    left or waits for its answer; the server cannot distinguish the two, and
    lets it wait for a second.

    Above 512 connections an idle one is closed: of the address that has the
    most connections, the one that has been idle longest. If none is idle, the
    new one gets status 503, unless it asks for the health of the server; above
    1024, it is closed at once.

    What it answers itself, a malformed request or a connection too many, is in
    the log of the `RestApp`, too.
    """

    def connection_made(self, transport):
        super().connection_made(transport)
        self._seen = (None, True, 0)
        self._since = self.loop.time()
        self._look = self.loop.call_later(_PATIENCE, self._end_if_held)
        self._make_room()

    def data_received(self, data):
        self._since = self.loop.time()
        super().data_received(data)

    def connection_lost(self, exc):
        self._look.cancel()
        super().connection_lost(exc)

    def eof_received(self):
        """Whether the connection stays open for a pending answer."""
        is_whole = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        if not is_whole or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False  # closed after the answer
        self.loop.call_later(_HALF_CLOSED, self._end_if_unanswered)
        return True

    def shutdown(self):
        """Closes the connection; an answer in flight says that it is the last.

        Without the header, a client sends its next request into a connection
        that is being closed.
        """
        if not self._is_idle():
            # Uvicorn then closes the connection as if the client had asked.
            self.cycle.scope["headers"].append(CLOSE_HEADER)
        super().shutdown()

    def _end_if_unanswered(self):
        if not self.cycle.response_started:
            self.transport.close()

    def send_400_response(self, msg):
        """Reports a malformed request, even in the middle of its body."""
        was_idle = self._is_idle()
        if not was_idle:
            self.cycle.scope["state"][MALFORMED] = True  # for the log
            self.cycle.disconnected = True  # it must not answer, too
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # an answer has begun, or is for HEAD
            self.transport.close()
            return
        if was_idle:  # otherwise the request is in the log
            self._log(400, len(msg))

    def _log(self, status, size, method="", path=""):
        self.config.app.log(
            access_record(
                time.perf_counter(),
                model="",
                version=None,
                request_id=request_id_of(None),
                client=self._address() or "",
                method=method,
                path=path,
                status=status,
                bytes=size,
            )
        )

    def _make_room(self):
        left = [c for c in self.connections if not c.transport.is_closing()]
        if len(left) <= _CONNECTIONS:
            return
        counts = collections.Counter(each._address() for each in left)
        idle = [each for each in left if each is not self and each._is_idle()]
        if idle:
            longest = min(
                idle, key=lambda each: (-counts[each._address()], each._since)
            )
            longest.transport.abort()
            return
        self.app = self._refuse_all_but_health(self.app)
        if len(left) > 2 * _CONNECTIONS:
            self.transport.abort()

    def _address(self):
        return self.client[0] if self.client else None

    def _is_idle(self):
        """Whether none of its requests is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _end_if_held(self):
        cycle, is_owed, unread = self._seen
        self._seen = (
            self.cycle,
            self._client_owes_bytes(),
            self.transport.get_write_buffer_size(),
        )
        _, still_owed, still_unread = self._seen
        is_stuck = still_unread and unread and unread - still_unread < _LEAST
        if cycle is self.cycle and (is_stuck or (is_owed and still_owed)):
            self.transport.abort()
        else:
            self._look = self.loop.call_later(_PATIENCE, self._end_if_held)

    def _client_owes_bytes(self):
        """Whether the server waits for more bytes from the client."""
        if self.conn.their_state is h11.IDLE:
            return self.cycle is None or bool(self.conn.trailing_data[0])
        # A body that is awaited has the timeout of `read_body`.
        is_body = self.conn.their_state is h11.SEND_BODY
        return is_body and self.cycle.response_complete

    def _refuse_all_but_health(self, app):
        async def refuse(scope, receive, send):
            if scope["path"] in ("/healthz", "/readyz"):
                return await app(scope, receive, send)
            self._log(503, len(_FULL), scope["method"], scope["path"])
            response = Response(
                _FULL,
                503,
                {"connection": "close", "retry-after": "1"},
                media_type="application/json",
            )
            return await response(scope, receive, send)

        return refuse
