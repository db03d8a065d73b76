import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kseq.data.built_in import dates
from kseq.devices import (
    device_strategy,
    end_unless_chief,
    is_chief,
    on_all_machines,
)
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_newest,
    step_of,
)
from tests.benchmarks.local_cluster import local_cluster

RECIPE = Path(__file__).parents[1] / "recipes" / "translate_lstm.py"
OPTIONS = [
    *("--train", "table.tsv", "--vocab-size=600", "--units=32"),
    *("--embedding-dim=16", "--evaluate-every=6", "--warmup-steps=10"),
    # Each device drops other places than one device would.
    *("--dropout=0", "--dtype=float32"),
]


def test_one_device_needs_no_strategy():
    assert device_strategy() is tf.distribute.get_strategy()


WORKERS = {"worker": ["a:1", "b:1"]}
CHIEF = {"chief": ["c:1"], "worker": ["a:1"]}


@pytest.mark.parametrize(
    ("cluster", "kind", "index", "chief"),
    [
        (WORKERS, "worker", 0, True),
        (WORKERS, "worker", 1, False),
        (CHIEF, "chief", 0, True),
        (CHIEF, "worker", 0, False),
        ({"worker": ["a:1"]}, "worker", 0, True),
    ],
)
def test_the_chief_of_a_cluster(monkeypatch, cluster, kind, index, chief):
    task = {"type": kind, "index": index}
    configuration = json.dumps({"cluster": cluster, "task": task})
    monkeypatch.setenv("TF_CONFIG", configuration)
    assert is_chief() == chief
    if chief:
        end_unless_chief()
    else:
        with pytest.raises(SystemExit) as stopped:
            end_unless_chief()
        assert not stopped.value.code


def start(folder, run, steps, environment, *more):
    options = f"--run={run}", f"--steps={steps}", *more
    return subprocess.Popen(
        [sys.executable, RECIPE, *OPTIONS, *options],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_two(folder, run, steps, *more):
    """The same command, as two machines of a cluster would run it."""
    return [
        start(folder, run, steps, {"TF_CONFIG": configuration}, *more)
        for configuration in local_cluster(2)
    ]


def finish(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors


def newest_step(directory):
    return step_of(checkpoint_paths(directory)[-1])


def weights(run):
    _, tensors = read_newest(run / "checkpoints" / "last")
    return numbered(tensors, "vars") + numbered(tensors, "opt")


def test_one_machine_asks_itself():
    assert on_all_machines(0.7) == [0.7]


@pytest.mark.slow
def test_two_processes_equal_one_and_outlive_a_lost_one(tmp_path):
    rows = zip(*dates("train", size=400), strict=True)
    (tmp_path / "table.tsv").write_text("\n".join(map("\t".join, rows)))

    chief, worker = start_two(tmp_path, "two", 10_000_000)
    last = tmp_path / "two" / "checkpoints" / "last"
    while not checkpoint_paths(last):
        assert chief.poll() is None
        time.sleep(0.1)
    worker.kill()
    worker.communicate()
    _, errors = chief.communicate(timeout=100)
    assert chief.returncode == 5
    assert "machine of the cluster was lost" in errors.splitlines()[-1]

    # One that is asked to stop, as the next to be taken away is, stops both.
    chief, worker = start_two(tmp_path, "two", 10_000_000)
    before = checkpoint_paths(last)
    while checkpoint_paths(last) == before:
        assert chief.poll() is None
        time.sleep(0.1)
    worker.send_signal(signal.SIGTERM)
    for process in (chief, worker):
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 143, errors
        assert f"Stopped after step {newest_step(last)}" in errors

    steps = newest_step(last) // 6 * 6
    finish(*start_two(tmp_path, "two", steps + 6))
    finish(*start_two(tmp_path, "whole", steps + 6))
    finish(start(tmp_path, "one", steps + 6, {}))
    for other, limit in (("whole", 1e-6), ("one", 1e-4)):
        for a, b in zip(
            weights(tmp_path / "two"), weights(tmp_path / other), strict=True
        ):
            np.testing.assert_allclose(a, b, atol=limit)
    metrics = (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()
    validated = [json.loads(line)["step"] for line in metrics if "val_" in line]
    assert validated == list(range(6, steps + 7, 6))
    assert len(list((tmp_path / "saved_models" / "two").glob("[0-9]*"))) == 1

    # Overwritten: no machine restores what the old run has saved.
    finish(*start_two(tmp_path, "two", 6, "--overwrite"))
    assert newest_step(last) == 6
