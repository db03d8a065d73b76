"""The best validation of a run."""

import json
import math


def best_record(run, monitor, mode="max"):
    r"""Finds the validation with the best score in `metrics.jsonl`.

    Args:
        run: `RunDirectory`.
        monitor: name of the score, such as "val_bleu".
        mode: "max" or "min".

    Returns:
        A dict, `step` and the scores of that step, or None where nothing
        was validated. Of equal scores the first is the best.

    Example:
        >>> run = kseq.runs.RunDirectory(".")
        >>> _ = run.metrics.write_text(
        ...     '{"step": 5, "val_loss": 2.0}\n{"step": 9, "val_loss": 1.5}\n'
        ... )
        >>> best_record(run, "val_loss", "min")
        {'step': 9, 'val_loss': 1.5}
    """
    if not run.metrics.is_file():
        return None
    records = []
    for line in run.metrics.read_text("utf-8").split("\n"):
        try:
            record = json.loads(line)
            score = record[monitor]
            if math.isfinite(score) and "step" in record:
                records.append(record)
        except (ValueError, TypeError, KeyError):  # half a line, or training
            continue
    if not records:
        return None
    choose = max if mode == "max" else min
    return choose(records, key=lambda record: record[monitor])
