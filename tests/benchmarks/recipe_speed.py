"""How fast a recipe trains, as a user would see it."""

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RECIPES = Path(__file__).parents[2] / "recipes"
WARM = 50  # steps, in which the shapes are met for the first time


def recipe_speed(name, *options, steps, cores=(None,)):
    """Trains on the built-in corpus, in a folder that is deleted again.

    Args:
        name: of the recipe.
        *options: for its command line.
        steps: int, how many are trained.
        cores: for each process a set of the cores that it may use, or None
            for all. Several are a cluster on this machine.

    Returns:
        Tokens a second, padding not counted: the median of `metrics.jsonl`.
    """
    command = [
        *(sys.executable, RECIPES / f"{name}.py", "--run=run"),
        *(f"--steps={steps}", f"--evaluate-every={steps}", *options),
    ]
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "TF_CONFIG": configuration},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=_only_on(allowed),
            )
            for allowed, configuration in zip(
                cores, _cluster(len(cores)), strict=True
            )
        ]
        codes = [process.wait() for process in processes]
        if any(codes):
            raise RuntimeError(f"{name} has failed.")
        lines = Path(folder, "run", "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return statistics.median(
        record["tokens_per_second"]
        for record in records
        if record["step"] > WARM and "tokens_per_second" in record
    )


def _only_on(cores):
    return cores and (lambda: os.sched_setaffinity(0, cores))


def _cluster(size):
    """TF_CONFIG of each of so many processes; empty for one."""
    if size == 1:
        return [""]
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(size)]
        for one in sockets:
            one.bind(("localhost", 0))
        addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    return [
        json.dumps(
            {
                "cluster": {"worker": addresses},
                "task": {"type": "worker", "index": index},
            }
        )
        for index in range(size)
    ]
