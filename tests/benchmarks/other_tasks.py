"""Writes public sets as tables that the recipes for pairs of text read.

    python tests/benchmarks/other_tasks.py cmudict cmudict.dict FOLDER
    python tests/benchmarks/other_tasks.py scan tasks_train_simple.txt FOLDER

`cmudict` takes the words of letters and apostrophes, leaves out comments and
the stress of vowels, and writes FOLDER/train.tsv, val.tsv and test.tsv: a word
and its phonemes, a row for each pronunciation. 12,000 words are drawn for the
test and 2,670 for validation, with all their pronunciations. `scan` writes
FOLDER/tasks_train_simple.tsv: a command and its actions. Both print how many
pairs each table has.
"""

import argparse
import random
import re
from pathlib import Path

from kseq.data import read_lines

_HELD_OUT = {"test": 12_000, "val": 2_670}  # words
_WORD = re.compile(r"([a-z']+)(?:\(\d+\))?")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=("cmudict", "scan"))
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    lines = [line.text.decode() for line in read_lines(options.file)]
    if options.set == "scan":
        tables = {options.file.stem: scan(lines)}
    else:
        tables = split(cmudict(lines), options.seed)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in tables.items():
        path = options.folder / f"{name}.tsv"
        rows = "".join(f"{source}\t{target}\n" for source, target in pairs)
        path.write_text(rows, "utf-8")
        print(name, len(pairs))


def cmudict(lines):
    """Pairs of a word and its phonemes, each once.

    >>> cmudict(["a AH0", "a(2) EY1", "a. EY1", "aalen AA1 L AH0 N # german"])
    [('a', 'AH'), ('a', 'EY'), ('aalen', 'AA L AH N')]
    """
    pairs = {}
    for line in lines:
        word, *phonemes = line.partition("#")[0].split()
        if found := _WORD.fullmatch(word):
            text = " ".join(phoneme.rstrip("012") for phoneme in phonemes)
            pairs[found[1], text] = None
    return list(pairs)


def scan(lines):
    """Pairs of a command and its actions.

    >>> scan(["IN: jump twice OUT: I_JUMP I_JUMP"])
    [('jump twice', 'I_JUMP I_JUMP')]
    """
    pairs = (line.removeprefix("IN: ").split(" OUT: ") for line in lines)
    return [(command, actions) for command, actions in pairs]


def split(pairs, seed):
    """Pairs in parts that share no source, those of training last."""
    words = sorted({word for word, _ in pairs})
    random.Random(seed).shuffle(words)
    parts = {}
    for name, count in {**_HELD_OUT, "train": len(words)}.items():
        drawn, words = set(words[:count]), words[count:]
        parts[name] = [pair for pair in pairs if pair[0] in drawn]
    return parts


if __name__ == "__main__":
    main()
