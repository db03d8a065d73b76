"""How fast a recipe trains, as a user would see it."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from local_cluster import local_cluster

RECIPES = Path(__file__).parents[2] / "recipes"
WARM = 50  # steps, in which the shapes are met for the first time


def recipe_speed(name, *options, steps, cores=(None,)):
    """Trains on the built-in corpus, in a folder that is deleted again.

    Args:
        name: of the recipe.
        *options: for its command line.
        steps: int, after how many the training is killed.
        cores: for each process a set of the cores that it may use, or None
            for all. Several are a cluster on this machine.

    Returns:
        Tokens a second, padding not counted: the median of `metrics.jsonl`.
    """
    command = [
        *(sys.executable, RECIPES / f"{name}.py", "--run=run"),
        *("--steps=100000", "--evaluate-every=100000", *options),
    ]
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder, "run", "metrics.jsonl")
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
                cores, local_cluster(len(cores)), strict=True
            )
        ]
        try:
            while not (records := _records(metrics, steps)):
                if any(process.poll() is not None for process in processes):
                    raise RuntimeError(f"{name} has failed.")
                time.sleep(0.2)
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return statistics.median(records)


def compare(ways, rounds):
    """Prints median speeds, and their ratios to the first.

    Args:
        ways: dict, name -> callable that returns a speed.
        rounds: int, how often each is called, all in turn.
    """
    speeds = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            speeds[name].append(measure())
    medians = {name: statistics.median(s) for name, s in speeds.items()}
    base, *_ = medians.values()
    for name, median in medians.items():
        print(f"{name:28}{median:8.0f}{median / base:8.2f}")


def _records(metrics, steps):
    """Tokens a second, once so many steps are done; the first left out."""
    if not metrics.exists():
        return []
    lines = map(json.loads, metrics.read_text().splitlines())
    records = {line["step"]: line["tokens_per_second"] for line in lines}
    if max(records, default=0) < steps:
        return []
    return [speed for step, speed in records.items() if step > WARM]


def _only_on(cores):
    return cores and (lambda: os.sched_setaffinity(0, cores))
