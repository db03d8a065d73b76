import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kseq import devices
from kseq.data import dates
from kseq.devices import (
    device_name,
    device_strategy,
    dtype_policy,
    from_chief,
    gpu_memory,
    grow_gpu_memory,
    is_chief,
    on_all_machines,
)
from kseq.process import start_tensorflow
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_newest,
    step_of,
)
from kseq.user_error import UserError
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


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_a_broken_cluster_is_refused(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match="TF_CONFIG is not a JSON object"):
        is_chief()


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
    assert from_chief({"a": 0.7}) == {"a": 0.7}


def with_gpus(monkeypatch, *capabilities):
    """TensorFlow as it is beside so many GPUs, on a processor without bf16."""
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: list(capabilities) if kind == "GPU" else [],
    )
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: {} if gpu is None else {"compute_capability": gpu},
    )
    monkeypatch.setattr(devices, "_processor_has_bfloat16", lambda: False)


@pytest.mark.parametrize(
    ("capabilities", "policy"),
    [
        ([(9, 0)], "mixed_bfloat16"),
        ([(8, 0), (8, 6)], "mixed_bfloat16"),
        ([(7, 5)], "float32"),
        ([(9, 0), (7, 0)], "float32"),
        ([None], "float32"),  # not of NVIDIA
        ([], "float32"),
    ],
)
def test_gpus_choose_the_dtype(monkeypatch, capabilities, policy):
    with_gpus(monkeypatch, *capabilities)
    assert dtype_policy() == policy


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_bf16 amx_tile", "mixed_bfloat16"),
        ("flags\t\t: fpu avx2 avx512f amx_bf16", "mixed_bfloat16"),
        ("Features\t: fp asimd sve bf16 i8mm", "mixed_bfloat16"),
        ("flags\t\t: fpu avx2 avx512f avx512bw", "float32"),
        ("flags\t\t: fpu avx2 f16c", "float32"),
        ("model name\t: The bf16 processor\nflags\t: fpu", "float32"),
        ("", "float32"),
        (None, "float32"),
    ],
)
def test_a_processor_chooses_the_dtype(monkeypatch, tmp_path, text, policy):
    described = tmp_path / "cpuinfo"
    if text is not None:
        described.write_text(f"processor\t: 0\n{text}\nbugs\t\t: spectre\n")
    monkeypatch.setattr(devices, "_PROCESSOR", described)
    monkeypatch.setattr(devices.platform, "system", lambda: "Linux")
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    assert dtype_policy() == policy
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert dtype_policy() == "float32"


def test_the_name_of_a_processor(monkeypatch, tmp_path):
    described = tmp_path / "cpuinfo"
    monkeypatch.setattr(devices, "_PROCESSOR", described)
    assert device_name() == platform.machine()
    described.write_text("processor\t: 0\nmodel name\t: Xeon(R) 2 GHz\n")
    assert device_name() == "Xeon(R) 2 GHz"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["H200"], "H200"),
        (["H200", "T4", "H200"], "2 x H200, T4"),
        ([None], "GPU"),
    ],
)
def test_the_names_of_gpus(monkeypatch, names, expected):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: names)
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: {"device_name": gpu} if gpu else {},
    )
    assert device_name() == expected


def test_the_memory_of_gpus(monkeypatch):
    assert gpu_memory() is None
    peaks = {"GPU:0": 5, "GPU:1": 7}
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: [*peaks]
    )
    # TensorFlow itself has no such device here.
    assert gpu_memory() is None
    monkeypatch.setattr(
        tf.config.experimental,
        "get_memory_info",
        lambda name: {"current": 1, "peak": peaks[name]},
    )
    assert gpu_memory() == 7


@pytest.mark.parametrize(
    ("others", "policy"),
    [
        ([0], "float32"),  # one machine without bfloat16 is enough
        ([1], "mixed_bfloat16"),
        ([1, 0, 1], "float32"),
    ],
)
def test_machines_agree_on_the_dtype(monkeypatch, others, policy):
    with_gpus(monkeypatch, (9, 0))
    monkeypatch.setattr(
        devices, "on_all_machines", lambda own: [float(own), *others]
    )
    assert dtype_policy() == policy


def test_memory_of_gpus_grows(monkeypatch):
    grown = []
    with_gpus(monkeypatch, (9, 0), (8, 0))
    monkeypatch.setattr(
        tf.config.experimental,
        "set_memory_growth",
        lambda gpu, enable: grown.append((gpu, enable)),
    )
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    start_tensorflow()
    assert grown == [((9, 0), True), ((8, 0), True)]

    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    grow_gpu_memory()
    assert len(grown) == 2


@pytest.mark.parametrize("error", [RuntimeError, ValueError])
def test_memory_stays_as_a_program_has_divided_it(monkeypatch, error):
    def refuse(gpu, enable):
        raise error("cannot be modified after being initialized")

    with_gpus(monkeypatch, (9, 0))
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", refuse)
    grow_gpu_memory()


@pytest.mark.slow
def test_all_machines_have_what_the_chief_has(tmp_path):
    program = """
import sys
from kseq.devices import device_strategy, from_chief
device_strategy()
for length in (1, 3000):
    print(from_chief({"é": sys.argv[1] * length, "b": 0.1}))
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, name],
            env={**os.environ, "TF_CONFIG": configuration},
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, configuration in zip("xy", local_cluster(2), strict=True)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=100)
        expected = [str({"é": "x" * length, "b": 0.1}) for length in (1, 3000)]
        assert output.splitlines() == expected


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
