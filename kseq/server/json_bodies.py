"""Large bodies of JSON."""

import gc
import json
import threading

from kseq.server.request_error import RequestError

_LARGE = 64 * 1024  # bytes
_COPIES = 3  # of a body: its text, its strings and their bytes
_VALUE, _CONTAINER = 64, 192  # bytes, about; more than in the body

_large_ones = threading.Lock()


def json_memory(body, most):
    """An estimate of the bytes that the parsed objects of a body will take.

    Args:
        body: bytes.
        most: int, bytes that its values may take, without their text.

    Raises:
        RequestError: if there are more.
    """
    size = 0
    for start in range(0, len(body), 2**20):  # other threads run between blocks
        part = body[start : start + 2**20]
        size += _VALUE * part.count(b",")
        size += _CONTAINER * (part.count(b"[") + part.count(b"{"))
    if size > most:
        raise RequestError(
            f"The body has too many values: they would take {size} bytes, and "
            f"the limit is {most}. Send fewer inputs at once.",
            status=413,
        )
    return size + _COPIES * len(body)


def parse_json(text, **options):
    """Parses a text; large ones are parsed one after the other.

    Garbage collection is disabled meanwhile: it would visit all objects again
    and again while their number grows.

    Args:
        text: str.
        **options: of `json.loads`.

    Raises:
        ValueError: if it is not JSON.
        RecursionError: if it is too deep.
    """
    if len(text) <= _LARGE:
        return json.loads(text, **options)
    with _large_ones:
        gc.disable()
        try:
            return json.loads(text, **options)
        finally:
            gc.enable()
