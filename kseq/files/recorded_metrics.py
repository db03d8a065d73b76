"""What training has written to metrics.jsonl."""

import json
from pathlib import Path

from kseq.files.json_files import json_object


def recorded_metrics(path, name=None):
    r"""Reads the rows of `metrics.jsonl`.

    Lines that are no row are left out, such as the half of one that a process
    has written when it was killed.

    Args:
        path: str or path of the file, which may be missing.
        name: str, of a metric; rows without it may be left out, which is
            faster, as those of a validation are few. By default all are read.

    Yields:
        dicts with `step`, an int, and metrics by name. Those of training have
        `loss`, those of a validation names that begin with `val_`.

    Example:
        >>> _ = Path("metrics.jsonl").write_text(
        ...     '{"step": 50, "loss": 2.5}\n{"step": 10'
        ... )
        >>> list(recorded_metrics("metrics.jsonl"))
        [{'step': 50, 'loss': 2.5}]
    """
    path = Path(path)
    if not path.is_file():
        return
    key = b"" if name is None else json.dumps(name).encode()
    with path.open("rb") as file:
        lines = (line for line in file if key in line)
        yield from filter(None, map(row_of, lines))


def row_of(line):
    """The row in a line, str or bytes; None if it is none."""
    row = json_object(line) or {}
    return row if isinstance(row.get("step"), int) else None


def is_validation(row):
    """Whether a row of metrics is that of a validation."""
    return any(name.startswith("val_") for name in row)
