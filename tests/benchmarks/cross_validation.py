"""Cross-validates classify_documents beside a linear model.

    python tests/benchmarks/cross_validation.py DOCUMENTS FOLDER OPTIONS...

Each fold of the documents is answered by models that have learned from the
others: by `kseq train classify_documents`, which gets the OPTIONS, and by that
of `linear_classifier.py`. Prints the accuracy of both on all documents, and
their difference with its standard error over the documents. A fold that has
been answered is not trained again.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from linear_classifier import fit
from sklearn.model_selection import StratifiedKFold
from split_documents import write_documents

import kseq
from kseq.data import read_document_corpus, read_documents


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", nargs=2, default=("label", "text"))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options, words = parser.parse_known_args()

    documents = read_documents(options.documents, options.columns)
    rows = list(zip(documents.labels, documents.texts, strict=True))
    folds = StratifiedKFold(
        options.folds, shuffle=True, random_state=options.seed
    )
    right = []  # (documents of a fold, 2)
    for number, (trained, judged) in enumerate(
        folds.split(documents.texts, documents.labels), 1
    ):
        folder = options.folder / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        for name, places in (("train", trained), ("test", judged)):
            write_documents(
                folder / f"{name}.jsonl",
                [rows[place] for place in places],
                documents.in_lines,
            )
        labels = [documents.labels[place] for place in judged]
        found = np.array(answers(folder, words))
        right.append((found == labels).T)
        shares = right[-1].mean(axis=0)
        print(f"fold {number}: kseq {shares[0]:.1%}, linear {shares[1]:.1%}")
    right = np.concatenate(right)
    shares = right.mean(axis=0)
    differences = right[:, 0].astype(float) - right[:, 1]
    error = differences.std(ddof=1) / len(right) ** 0.5
    print(f"{len(right)} documents: kseq {shares[0]:.2%}", end=", ")
    print(f"linear {shares[1]:.2%}; difference", end=" ")
    print(f"{differences.mean():.2%}, standard error {error:.2%}")


def answers(folder, words):
    """The labels of the test documents, by kseq and by the linear model."""
    stored = folder / "answers.json"
    if stored.is_file():
        return json.loads(stored.read_text())
    train = folder / "train.jsonl"
    run = folder / f"{folder.parent.name}_{folder.name}"  # a name of its own
    command = [sys.executable, "-m", "kseq", "train", "classify_documents"]
    command += ["--train", str(train), "--run", str(run), *words]
    subprocess.run(command, check=True)
    texts = read_documents(folder / "test.jsonl").texts
    tfidf, model, _ = fit(read_document_corpus(train))
    linear = model.predict(tfidf.transform(texts)).tolist()
    found = [kseq.load(run)(texts), linear]
    stored.write_text(json.dumps(found))
    return found


if __name__ == "__main__":
    main()
