"""What is known of a request after its answer, for the log and metrics."""

import datetime
import re
import time
import uuid

_REQUEST_ID = re.compile(r"[\w.:/+=@-]{1,128}", re.ASCII)


def access_record(start, *, model, version, request_id, **facts):
    """The record of a request, a dict that has no text of it.

    Args:
        start: float, of `time.perf_counter`, when it came.
        model: str, the name of a model that is served, or "".
        version: int, which answered; None for none.
        request_id: str.
        **facts: of the protocol: `client`, `method`, `path`, `status`,
            `bytes`.
    """
    now = datetime.datetime.now(datetime.UTC)
    return {
        "time": now.isoformat(timespec="milliseconds"),
        "request_id": request_id,
        "model": model,
        "version": version,
        **facts,
        "seconds": round(time.perf_counter() - start, 6),
    }


def request_id_of(sent):
    """The id that a client sent as X-Request-Id, or a new one.

    Args:
        sent: str or None. Ids of other characters than ASCII letters, digits
            and `_.:/+=@-`, or of more than 128, are replaced.
    """
    if sent and _REQUEST_ID.fullmatch(sent):
        return sent
    return uuid.uuid4().hex
