"""Memory of preparing and training, for each kind, with 100 times the lines.

    python tests/benchmarks/memory_of_kinds.py FOLDER [LINES [KIND ...]]

Generates a corpus of LINES lines and one of 100 times as many, prepares both
with `kseq prepare`, and trains 20 steps of a small model on them, with one
validation. Prints the most memory of the processes: all that is resident, with
the pages of mapped files, which the system drops where memory is needed, and
what belongs to the process alone. Linux only: it reads /proc.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from prepare_speed import words_of_lines

from kseq.files.recorded_metrics import is_validation, recorded_metrics

STEPS = 20
TIMES = 100
FRAMES = 5  # of a recording and of a picture
RECURRENT = ("--units", "16", "--embedding-dim", "16")
LAYERS = (
    *("--layers", "1", "--model-dim", "32"),
    *("--ffn-dim", "64", "--heads", "4"),
)


def lines_of(count, seed=1):
    return words_of_lines(count, seed, "etaoinshrdlucmfwyp", 5000)


def pairs(count):
    for seed, name in enumerate(("a.de", "a.en")):
        write(name, map(" ".join, lines_of(count, seed)))
    return ("a.de", "a.en"), ()


def documents(count):
    lines = lines_of(count)
    rows = (f"{n % 3}\t{' '.join(line)}." for n, line in enumerate(lines))
    write("a.tsv", itertools.chain(["label\ttext"], rows))
    return ("a.tsv",), ("--documents",)


def text(count):
    write("a.txt", map(" ".join, lines_of(count)))
    return ("a.txt",), ("--text", "--pieces", "bpe")


def tags(count):
    lines = lines_of(count)
    write("a.conll", ("".join(f"{w} {w[0]}\n" for w in line) for line in lines))
    return ("a.conll",), ("--tags",)


def dialogues(count):
    """Of four turns."""
    lines = map(" ".join, lines_of(count))
    turns = zip(*[lines] * 4, strict=False)
    write("a.jsonl", (json.dumps({"turns": each}) for each in turns))
    return ("a.jsonl",), ("--dialogues",)


def features(count):
    """Of recordings or pictures, and their texts."""
    lines = map(" ".join, lines_of(count))
    write("a.tsv", (f"{n}.x\t{line}" for n, line in enumerate(lines)))
    values = np.random.default_rng(1).normal(size=(count, FRAMES, 8))
    np.savez(
        "a.npz",
        features=values.astype("float16"),
        names=np.array([f"{n}.x" for n in range(count)]),
    )
    return ("a.tsv",), ("--features", "a.npz")


def recordings(count):
    found = features(count)
    arrays = dict(np.load("a.npz"))
    arrays["features"] = arrays["features"].reshape(-1, 8)
    np.savez("a.npz", lengths=np.full(count, FRAMES), **arrays)
    return found


KINDS = {
    "pairs": (pairs, "translate_transformer", LAYERS),
    "documents": (documents, "classify_documents", RECURRENT[:2]),
    "text": (text, "write_text", (*LAYERS, "--length", "32")),
    "tags": (tags, "tag_words", ("--layers", "1")),
    "dialogues": (dialogues, "chat", RECURRENT),
    "recordings": (recordings, "transcribe_speech", RECURRENT),
    "pictures": (features, "caption_images", RECURRENT),
}


def write(name, lines):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def main(folder, lines=10_000, *kinds):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    print("GiB: all, and what belongs to the process alone")
    for kind in kinds or KINDS:
        generate, recipe, sizes = KINDS[kind]
        for count in (int(lines), TIMES * int(lines)):
            for path in ("prepared", "run", "saved_models"):
                shutil.rmtree(path, ignore_errors=True)
            files, options = generate(count)
            size = sum(map(os.path.getsize, files)) / 2**20
            vocabulary = (
                ("--vocab-size", "2000")
                if kind not in ("recordings", "pictures")
                else ()
            )
            prepare = ("prepare", "prepared", *options, "--train", *files)
            preparing = peak((*prepare, *vocabulary))
            train = (
                *("train", recipe, "--train", "prepared", "--run", "run"),
                *("--steps", "1000", "--evaluate-every", f"{STEPS}", *sizes),
            )
            training = peak(train, has_validated)
            print(
                f"{kind}, {count:,} lines, {size:,.0f} MiB: "
                f"prepare {numbers(preparing)}, train {numbers(training)}",
                flush=True,
            )


def numbers(sizes):
    return " and ".join(f"{size / 2**20:.2f}" for size in sizes)


def has_validated():
    return any(map(is_validation, recorded_metrics("run/metrics.jsonl")))


def peak(command, is_done=None):
    """KiB, the most of a process: what is resident, and what is its own."""
    most = [0, 0]
    process = subprocess.Popen(
        [sys.executable, "-m", "kseq", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None:
        for number in (process.pid, *children(process.pid)):
            most = [*map(max, most, memory(number))]
        if is_done and is_done():
            break
        time.sleep(0.05)
    ended_alone = process.poll() is not None
    if not ended_alone:
        os.killpg(process.pid, signal.SIGKILL)
    errors = process.stderr.read()
    if process.wait() and ended_alone:
        sys.exit(errors)
    return most


def children(number):
    try:
        path = Path(f"/proc/{number}/task/{number}/children")
        return map(int, path.read_text().split())
    except OSError:  # it has ended
        return ()


def memory(number):
    try:
        rows = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = dict(row.split(":", 1) for row in rows if ":" in row)
    return tuple(
        int(found.get(name, "0").split()[0]) for name in ("VmRSS", "RssAnon")
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
