"""Splits a table of pairs by their first column, the same way each time.

    python tests/benchmarks/split_pairs.py PAIRS FOLDER

PAIRS is a TSV in which one sentence of the first column may have several
translations, as in Tatoeba's. All of them go to the same part. Writes
FOLDER/train.tsv, FOLDER/val.tsv and FOLDER/test.tsv with the pairs of 1,000
drawn sentences in each of the last two, and prints how many pairs each gets.
"""

import argparse
import random
from pathlib import Path

from kseq.data import read_lines

HELD_OUT = 1000  # sentences of the first column


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    lines = [line.text for line in read_lines(options.pairs)]
    sentences = sorted({line.split(b"\t")[0] for line in lines})
    random.Random(options.seed).shuffle(sentences)
    parts = dict.fromkeys(sentences[:HELD_OUT], "val")
    parts |= dict.fromkeys(sentences[HELD_OUT : 2 * HELD_OUT], "test")

    options.folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "val", "test"):
        chosen = [
            line
            for line in lines
            if parts.get(line.split(b"\t")[0], "train") == name
        ]
        path = options.folder / f"{name}.tsv"
        path.write_bytes(b"".join(line + b"\n" for line in chosen))
        print(name, len(chosen))


if __name__ == "__main__":
    main()
