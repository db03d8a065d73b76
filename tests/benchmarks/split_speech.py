"""Splits features of speech for the recipe, 100 utterances held out by seed.

python tests/benchmarks/split_speech.py FOLDER OUTPUT --seed 1

FOLDER has train.npz, `features` and `lengths` of all utterances, and train.tsv,
their names, numbers of frames and transcripts in the same order. OUTPUT gets
features.npz, with names, train.tsv and held_out.tsv.
"""

import argparse
from pathlib import Path

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", type=int, default=100)
    options = parser.parse_args()

    arrays = np.load(options.folder / "train.npz")
    table = (options.folder / "train.tsv").read_text("utf-8")
    rows = [row.split("\t") for row in table.splitlines()]
    names, frames, texts = zip(*rows, strict=True)
    lengths = arrays["lengths"]
    assert lengths.tolist() == [int(count) for count in frames]

    options.output.mkdir(parents=True, exist_ok=True)
    np.savez(
        options.output / "features.npz",
        features=arrays["features"],
        lengths=lengths,
        names=names,
    )
    draw = np.random.default_rng(options.seed)
    order = draw.permutation(len(rows))
    splits = {
        "held_out.tsv": order[: options.held_out],
        "train.tsv": order[options.held_out :],
    }
    for name, places in splits.items():
        lines = [
            f"{names[place]}\t{texts[place]}\n" for place in sorted(places)
        ]
        (options.output / name).write_text("".join(lines), "utf-8")
        print(f"{name}: {len(lines)} utterances")


if __name__ == "__main__":
    main()
