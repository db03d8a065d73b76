"""The effect of each option of a recipe, one training each.

    python tests/benchmarks/effects.py FOLDER RECIPE TRAIN VALIDATION

Trains RECIPE (of `BASE`) on a table of pairs with the options of `BASE`, then
once more with each of `VARIANTS`, in FOLDER/RECIPE. Prints a row for each: CPU
time, BLEU and chrF of the validation pairs, and their differences from the
first with 95 % confidence intervals, by `kseq compare`. The row "another seed"
shows how much of them is chance. Rows are kept: the command goes on where it
ended, and `--only NAME` measures a part.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

BASE = {
    "translate_transformer": "--layers 2 --vocab-size 4000 --batch-tokens 1024 "
    "--steps 2000 --evaluate-every 1000 --warmup-steps 800 --averaged 1 "
    "--positions sinusoidal",
    "translate_lstm": "--embedding-dim 128 --units 256 --vocab-size 4000 "
    "--batch-tokens 1024 --steps 1500 --evaluate-every 750",
    "translate_convolutional": "--embedding-dim 128 --vocab-size 4000 "
    "--batch-tokens 1024 --steps 1500 --evaluate-every 750",
}
VARIANTS = {
    "translate_transformer": {
        "another seed": "--seed 2",
        "norm after": "--norm post",
        "norm before and after": "--norm both",
        "RMSNorm": "--normalization rms",
        "SwiGLU": "--activation swiglu",
        "rotary positions": "--positions rotary",
        "relative positions": "--positions relative",
        "learned positions": "--positions learned",
        "no positions": "--positions none",
        "no label smoothing": "--label-smoothing 0",
        "R-Drop": "--r-drop 1",
        "piece dropout": "--piece-dropout 0.1",
        "subword dropout": "--subword-dropout 0.3",
        "dropout 0.1": "--dropout 0.1",
        "mean of two checkpoints": "--averaged 2",
        "EMA": "--ema 0.99",
        "pretraining": "--pretraining-steps 1000",
        "unigram": "--pieces unigram",
        "characters": "--pieces char",
        "words": "--pieces word",
        "cosine": "--schedule cosine",
        "Lion": "--optimizer lion --learning-rate 0.0005",
        "Adafactor": "--optimizer adafactor",
        "one head of keys": "--kv-heads 1",
        "3 + 1 layers": "--encoder-layers 3 --decoder-layers 1",
        "shared layers": "--share-layers",
        "window of 4": "--window 4",
        "GELU": "--activation gelu",
    },
    "translate_lstm": {
        "another seed": "--seed 2",
        "no attention": "--attention none",
        "dot": "--attention dot",
        "scaled dot": "--attention scaled_dot",
        "general": "--attention general",
        "additive": "--attention additive",
        "additive, Bahdanau's order": "--attention additive --order bahdanau",
        "location": "--attention location",
        "location-aware": "--attention location_aware",
        "local, monotonic": "--local monotonic --window 4",
        "local, predictive": "--local predictive --window 4",
        "no input feeding": "--no-input-feeding",
        "GRU": "--cell gru",
        "plain RNN": "--cell rnn",
        "copying": "--copy",
        "piece dropout": "--piece-dropout 0.1",
        "subword dropout": "--subword-dropout 0.3",
        "scheduled sampling": "--sampling-schedule linear",
        "no label smoothing": "--label-smoothing 0",
        "no EMA": "--ema 0",
        "dropout 0.1": "--dropout 0.1",
    },
    "translate_convolutional": {
        "another seed": "--seed 2",
        "3 + 2 layers": "--encoder-layers 3 --decoder-layers 2",
        "kernels of 5": "--kernel-size 5",
        "no label smoothing": "--label-smoothing 0",
        "no EMA": "--ema 0",
        "dropout 0.1": "--dropout 0.1",
    },
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("recipe", choices=list(BASE))
    parser.add_argument("train")
    parser.add_argument("validation")
    parser.add_argument("--columns", nargs=2, default=("2", "1"))
    parser.add_argument("--only", nargs="+", help="names of rows")
    options = parser.parse_args()

    options.train, options.validation = map(
        os.path.abspath, (options.train, options.validation)
    )
    folder = options.folder / options.recipe
    folder.mkdir(parents=True, exist_ok=True)
    variants = VARIANTS[options.recipe]
    print("| | CPU time | BLEU | difference | chrF | difference |")
    print("|---|---|---|---|---|---|", flush=True)
    for name, changed in {"base": "", **variants}.items():
        kept = folder / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.json"
        if not kept.exists():
            if options.only and name not in (*options.only, "base"):
                continue
            measured = measure(options, folder, kept.stem, changed)
            kept.write_text(json.dumps(measured))
        print(row(name, changed, json.loads(kept.read_text())), flush=True)


def measure(options, folder, name, changed):
    """Trains once, and compares with the base."""
    data = ("--train", options.train, "--validation", options.validation)
    columns = ("--columns", *options.columns)
    base = BASE[options.recipe].split()
    before = cpu_seconds()
    kseq(
        *("train", options.recipe, *data, *columns, *base, *changed.split()),
        *("--run", name),
        folder=folder,
    )
    seconds = cpu_seconds() - before
    output = kseq(
        *("compare", "base", name, options.validation, *columns),
        *("--json", "--show", "0", "--metrics", "bleu", "chrf"),
        folder=folder,
    )
    return {"seconds": seconds, **json.loads(output)}


def kseq(*command, folder):
    return subprocess.run(
        [sys.executable, "-m", "kseq", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name, changed, measured):
    cells = [f"{name}, `{changed}`" if changed else name]
    cells.append(f"{measured['seconds'] / 60:.1f} min")
    for scores in measured["scores"]:
        low, high = scores["interval"]
        a, b = scores["values"]
        cells.append(f"{b:.1f}")
        difference = f"{b - a:+.1f} ({low:+.1f} to {high:+.1f})"
        cells.append(difference if changed else "")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
