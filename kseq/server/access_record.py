"""The record of an answered request, for the log and metrics."""

import datetime
import re
import time
import uuid

MALFORMED = "kseq.malformed"  # in the state of a request whose body breaks off
# Of a text of the client. A record is shorter than 4 KiB as JSON, which a pipe
# takes as a whole, whoever else writes to it.
_LONGEST = 200
_REQUEST_ID = re.compile(r"[\w.:/+=@-]{1,128}", re.ASCII)


def access_record(start, *, model, version, request_id, **facts):
    """The record of a request, a dict without its text.

    Args:
        start: float, of `time.perf_counter`, when it arrived.
        model: str, the name of a served model, or "".
        version: int, the one that answered, or None.
        request_id: str.
        **facts: of the protocol: `client`, `method`, `path`, `status`,
            `bytes`. The first 200 characters of each are kept.
    """
    now = datetime.datetime.now(datetime.UTC)
    return {
        "time": now.isoformat(timespec="milliseconds"),
        "request_id": request_id,
        "model": model,
        "version": version,
        **{
            name: value[:_LONGEST] if isinstance(value, str) else value
            for name, value in facts.items()
        },
        "seconds": round(time.perf_counter() - start, 6),
    }


def request_id_of(sent):
    """The id that a client sent as X-Request-Id, or a new one.

    Args:
        sent: str or None. Ids with characters other than ASCII letters, digits
            and `_.:/+=@-`, or with more than 128 characters, are replaced.
    """
    if sent and _REQUEST_ID.fullmatch(sent):
        return sent
    return uuid.uuid4().hex
