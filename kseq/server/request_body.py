"""The body of a request, within limits."""

import asyncio
import zlib

from starlette.requests import ClientDisconnect

from kseq.server.request_error import RequestError

_SMALL = 64 * 1024  # bytes; larger bodies occupy memory that others may need
_PACE = 5.0  # seconds in which
_LEAST = 64 * 1024  # bytes of a large body must come


async def read_body(scope, receive, limit, timeout, hold):
    """Reads a body, which may be compressed by gzip.

    Args:
        scope: dict of ASGI.
        receive: callable of ASGI.
        limit: int, bytes before and after decompression.
        timeout: float, seconds.
        hold: callable of the number of bytes of each part, before it is
            kept.

    Returns:
        bytes.

    Raises:
        RequestError: if it is too large, arrives too slowly or is broken, or
            what `hold` raises.
        ClientDisconnect: if the client leaves.
    """
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    is_gzip = headers.get(b"content-encoding", b"").lower() == b"gzip"
    gzip = zlib.decompressobj(wbits=31) if is_gzip else None
    body, received, seen = bytearray(), 0, 0
    try:
        async with asyncio.timeout(timeout), asyncio.timeout(None) as pace:
            async for part in _parts(receive):
                received += len(part)
                if received - seen >= _LEAST or seen <= _SMALL < received:
                    seen = received
                    pace.reschedule(asyncio.get_running_loop().time() + _PACE)
                room = limit + 1 - len(body)
                part = gzip.decompress(part, room) if gzip else part
                if gzip and gzip.unused_data:
                    raise RequestError("The gzip body has more than one member")
                hold(len(part))
                body += part
                if max(received, len(body)) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise RequestError(
            "The body of the request was not received in time", status=408
        ) from None
    except zlib.error:
        raise RequestError("The body is not gzip") from None
    if gzip and not gzip.eof:
        raise RequestError("The gzip body is truncated")
    return bytes(body)


async def _parts(receive):
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


def _too_large(limit):
    return RequestError(
        f"The body of the request has more than {limit} bytes", status=413
    )
