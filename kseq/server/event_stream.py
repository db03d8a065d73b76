"""Server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from kseq.server.request_error import RequestError

_HEADERS = {
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # a proxy must not collect them
}


class EventStream(Response):
    """A response whose parts are sent as they come.

    Args:
        first: bytes, the first event.
        others: async iterator of bytes, the others. What it raises as
            `RequestError` becomes the last event.
        to_event: callable of a `RequestError`, gives that event.

    Attributes:
        status: int for the log, valid after the response: 200, that of an
            error, or 499 if the client has left.
        size: int, bytes of the events sent.

    Reference:
        WHATWG HTML, section 9.2 (server-sent events).
    """

    def __init__(
        self,
        first: bytes,
        others: AsyncIterator[bytes],
        to_event: Callable[[RequestError], bytes],
    ):
        super().__init__(media_type="text/event-stream", headers=_HEADERS)
        del self.headers["content-length"]
        self._first = first
        self._others = others
        self._to_event = to_event
        self.status = 499
        self.size = 0

    async def __call__(self, scope, receive, send):
        with contextlib.suppress(ClientDisconnect):
            await unless_disconnected(self._send(send), receive)
        await self._others.aclose()

    async def _send(self, send):
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        await self._send_part(send, self._first)
        fault = None
        try:
            async for part in self._others:
                await self._send_part(send, part)
            self.status = 200
        except Exception as error:
            if not isinstance(error, RequestError):
                fault, error = error, RequestError("Internal error", "INTERNAL")
            self.status = error.status
            await self._send_part(send, self._to_event(error))
        await send({"type": "http.response.body", "body": b""})
        if fault:  # for the log of the server
            raise fault

    async def _send_part(self, send, part):
        self.size += len(part)
        await send(
            {"type": "http.response.body", "body": part, "more_body": True}
        )


async def unless_disconnected(answer, receive):
    """Awaits an answer, unless the client leaves first.

    Args:
        answer: awaitable, cancelled in that case.
        receive: callable of ASGI; the body has been read.

    Raises:
        ClientDisconnect: if the client leaves; and what `answer` raises.
    """
    answer = asyncio.ensure_future(answer)
    left = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        left.cancel()
        if answer.cancel():
            await asyncio.wait((answer,))


async def _disconnected(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


def event(data: bytes) -> bytes:
    """An event of one line of data, such as JSON."""
    return b"data: " + data + b"\n\n"
