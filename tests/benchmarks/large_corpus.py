"""A corpus of any size, prepared, trained on, and killed ten times.

    python tests/benchmarks/large_corpus.py FOLDER [PAIRS]

Generates the pairs in FOLDER, unless they are there, and prints the time, CPU
time and memory of `kseq prepare` and of 200 steps of a small Transformer on
what it wrote. The same training is then killed ten times, by SIGTERM and
SIGKILL in turn, and resumed: its weights must be those of the one that was not,
to the bit. What it wrote stays in FOLDER.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from prepare_speed import write_lines

from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_newest,
    step_of,
)

STEPS, KILLS = 200, 10
SMALL = (
    *("--layers", "1", "--model-dim", "32", "--ffn-dim", "64", "--heads", "4"),
    *("--batch-tokens", "1024", "--evaluate-every", "100"),
)


def main(folder, pairs=200_000):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    files = [f"pairs.{side}" for side in ("de", "en")]
    for seed, file in enumerate(files):
        if not Path(file).is_file():
            write_lines(Path("part"), pairs, seed)
            os.rename("part", file)
    size = sum(map(os.path.getsize, files))
    print(f"{pairs:,} pairs, {size / 2**20:,.0f} MiB", flush=True)

    shutil.rmtree("prepared", ignore_errors=True)
    prepare = "prepare", "prepared", "--train", *files
    report("prepare", *run(*prepare, "--vocab-size", "8000"))
    size = sum(path.stat().st_size for path in Path("prepared").iterdir())
    print(f"the folder: {size / 2**20:,.0f} MiB")

    for name in ("whole", "killed"):
        shutil.rmtree(name, ignore_errors=True)
    report(f"{STEPS} steps", *run(*training("whole")))
    seconds, most = killed_training()
    print(
        f"from the start of the command to a new checkpoint, {KILLS} times: "
        f"{min(seconds):.0f} to {max(seconds):.0f} s; at most "
        f"{most / 2**20:,.2f} GiB"
    )
    same = all(map(np.array_equal, weights("whole"), weights("killed")))
    print("the same weights, to the bit" if same else "OTHER WEIGHTS")


def training(name):
    return (
        *("train", "translate_transformer", "--train", "prepared"),
        *("--run", name, "--steps", str(STEPS), *SMALL),
        *("--save-every", "0.02"),
    )


def start(*command):
    return subprocess.Popen(
        [sys.executable, "-m", "kseq", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*command):
    """The seconds that a command takes, and what the system says of it."""
    begin = time.monotonic()
    before = os.times()
    process = start(*command)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(errors)
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return time.monotonic() - begin, cpu, usage.ru_maxrss


def report(what, seconds, cpu, kibibytes):
    print(
        f"{what}: {seconds:,.0f} s, {cpu:,.0f} s of CPU time, at most "
        f"{kibibytes / 2**20:,.2f} GiB in a process",
        flush=True,
    )


def killed_training():
    """Seconds to the first checkpoint of each start, and the most memory."""
    seconds, most = [], 0
    draw = random.Random(1)
    for kill in range(KILLS):
        before = newest()
        begin = time.monotonic()
        process = start(*training("killed"))
        while newest() <= before:
            if process.poll() is not None:
                sys.exit(process.stderr.read() or "It ended too early.")
            time.sleep(0.02)
        seconds.append(time.monotonic() - begin)
        time.sleep(draw.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL if kill % 2 else signal.SIGTERM)
        process.stderr.read()
        _, _, usage = os.wait4(process.pid, 0)
        most = max(most, usage.ru_maxrss)
        print(f"killed after step {newest()} is saved", flush=True)
    run(*training("killed"))
    return seconds, most


def newest():
    paths = checkpoint_paths(Path("killed", "checkpoints", "last"))
    return step_of(paths[-1]) if paths else 0


def weights(name):
    _, tensors = read_newest(Path(name, "checkpoints", "last"))
    found = numbered(tensors, "vars") + numbered(tensors, "opt")
    return [tensor.numpy() for tensor in found]


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
