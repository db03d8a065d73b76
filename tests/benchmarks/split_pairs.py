"""Splits a table of pairs so that its parts share no sentence.

    python tests/benchmarks/split_pairs.py PAIRS FOLDER

PAIRS is a TSV in which one sentence may have several translations, in both
directions, as in Tatoeba's. 1,000 sentences of the first column are drawn for
FOLDER/test.tsv and 1,000 for FOLDER/val.tsv, with all their translations; a
pair that shares a sentence with them, on either side, is left out of the other
parts. Prints how many pairs each gets.
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

    pairs = [line.text.split(b"\t")[:2] for line in read_lines(options.pairs)]
    sentences = sorted({first for first, _ in pairs})
    random.Random(options.seed).shuffle(sentences)

    options.folder.mkdir(parents=True, exist_ok=True)
    seen = set()  # sentences of the parts that are written
    for name in ("test", "val", "train"):
        drawn = set(sentences if name == "train" else sentences[:HELD_OUT])
        sentences = sentences[HELD_OUT:]
        part = [
            pair for pair in pairs if pair[0] in drawn and seen.isdisjoint(pair)
        ]
        seen.update(sentence for pair in part for sentence in pair)
        path = options.folder / f"{name}.tsv"
        path.write_bytes(b"".join(b"\t".join(pair) + b"\n" for pair in part))
        print(name, len(part))


if __name__ == "__main__":
    main()
