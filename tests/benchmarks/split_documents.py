"""Splits labelled documents that come without a test set, always alike.

    python tests/benchmarks/split_documents.py DOCUMENTS FOLDER

Writes FOLDER/train.jsonl and FOLDER/test.jsonl, for
recipes/classify_documents.py and `kseq evaluate`: of each label a fifth, drawn
by a seed, is for testing. Prints how many documents each gets.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from sklearn.model_selection import train_test_split

from kseq.data import read_document_corpus, read_documents

SPLITS = ("train", "test")


def write_documents(path, rows, in_lines):
    """Writes (label, text) as JSON lines."""
    with open(path, "w") as file:
        for label, text in rows:
            content = (
                {"sentences": text.split("\n")} if in_lines else {"text": text}
            )
            print(json.dumps({"label": label, **content}), file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", nargs=2, default=("label", "text"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    documents = read_documents(options.documents, options.columns)
    parts = train_test_split(
        list(zip(documents.labels, documents.texts, strict=True)),
        test_size=0.2,
        random_state=options.seed,
        stratify=documents.labels,
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(SPLITS, parts, strict=True):
        path = options.folder / f"{name}.jsonl"
        write_documents(path, rows, documents.in_lines)
        counts = sorted(Counter(label for label, _ in rows).items())
        print(name, len(rows), dict(counts))
    # Says how many texts stand in both.
    read_document_corpus(*(options.folder / f"{n}.jsonl" for n in SPLITS))


if __name__ == "__main__":
    main()
