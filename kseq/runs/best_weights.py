"""The checkpoints of a run that are used by default."""

import sys

from kseq.runs.checkpoint_files import checkpoint_paths, step_of


def best_weights(run):
    """The name of the checkpoints that are used by default.

    That is "average" where there is one, then "best", then "last". An average
    from which training has resumed, to a later `best`, is skipped, with a
    warning on standard error.

    Args:
        run: `RunDirectory`.
    """
    steps = {}
    for name in ("average", "best", "last"):
        if paths := checkpoint_paths(run.checkpoints / name):
            steps[name] = step_of(paths[-1])
    first, *others = [*steps, "last"]
    if first == "average" and steps.get(others[0], 0) > steps[first]:
        print(
            f"{run.path} was trained after step {steps[first]}, that of its "
            f"average: {others[0]!r} of step {steps[others[0]]} is used "
            "instead. `kseq average` makes a new one.",
            file=sys.stderr,
        )
        return others[0]
    return first
