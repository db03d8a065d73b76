"""The temperature of the probabilities of a run."""

import math
from pathlib import Path

from kseq.files.atomic_write import atomic_write
from kseq.files.json_files import read_json, to_json
from kseq.runs.checkpoint_files import newest_weights
from kseq.user_error import RunError


def write_temperature(run, weights, temperature):
    """Keeps the temperature that was fitted to the newest weights of a name.

    Args:
        run: `RunDirectory`.
        weights: "average", "best" or "last".
        temperature: float.

    Raises:
        RunError: if none of them is intact.
    """
    checkpoint = newest_weights(run, weights)
    content = {"temperature": temperature, "checkpoint": _name(checkpoint)}
    atomic_write(run.calibration, to_json(content))


def read_temperature(run, checkpoint):
    """The temperature of weights; 1 if none was fitted to them.

    Args:
        run: `RunDirectory`.
        checkpoint: str, the path of the checkpoint that has them.

    Raises:
        RunError: if `calibration.json` is broken.
    """
    if not run.calibration.is_file():
        return 1.0
    found = read_json(run.calibration)
    temperature = found.get("temperature")
    if type(temperature) not in (int, float) or not (
        0 < temperature < math.inf
    ):
        raise RunError(
            f"{run.calibration} is broken: temperature must be a positive "
            f"number. Received: {temperature!r:.80}"
        )
    is_fitted = found.get("checkpoint") == _name(checkpoint)
    return float(temperature) if is_fitted else 1.0


def _name(checkpoint):
    """Within the run, such as "best/ckpt-600"."""
    path = Path(checkpoint)
    return f"{path.parent.name}/{path.name}"
