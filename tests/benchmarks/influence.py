"""Whether the sentence with the highest weight is one that matters.

    python tests/benchmarks/influence.py EXPORT DOCUMENTS

Takes 200 documents of two sentences or more, deletes from each the sentence
with the highest weight, and then any other one drawn at random, and prints by
how much the probability of the label that the whole document got changes, on
average. The weights are no proof of what the model used; this is a test of
them.
"""

import argparse
import random

import numpy as np

import kseq
from kseq.data import read_documents


def without(document, place):
    """The text of a document without a sentence."""
    kept = [*document.sentences[:place], *document.sentences[place + 1 :]]
    return "\n".join(kept)


def probabilities(classifier, texts, labels):
    """Of the given labels, an array."""
    rows = classifier.probabilities(texts)
    return np.array(
        [row[label] for row, label in zip(rows, labels, strict=True)]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export")
    parser.add_argument("documents")
    parser.add_argument("--columns", nargs=2, default=("label", "text"))
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()

    draw = random.Random(0)
    classifier = kseq.load(options.export)
    texts = read_documents(options.documents, options.columns).texts
    documents = []
    for text in draw.sample(texts, len(texts)):
        [document] = classifier.explain([text])
        if len(document.sentences) > 1:
            documents.append(document)
        if len(documents) == options.count:
            break

    labels = [document.label for document in documents]
    highest = [int(np.argmax(d.sentence_weights)) for d in documents]
    others = [
        draw.choice([i for i in range(len(d.sentences)) if i != place])
        for d, place in zip(documents, highest, strict=True)
    ]
    # Both in the form in which a sentence is missing: a line each.
    whole = probabilities(
        classifier, ["\n".join(d.sentences) for d in documents], labels
    )
    changes = [
        np.abs(
            whole
            - probabilities(
                classifier, list(map(without, documents, places)), labels
            )
        )
        for places in (highest, others)
    ]
    print(f"{len(documents)} documents; change of the probability, mean:")
    print(f"  without the sentence that weighs most  {changes[0].mean():.4f}")
    print(f"  without another one                    {changes[1].mean():.4f}")
    print(f"  the first is larger in {np.mean(changes[0] > changes[1]):.1%}")


if __name__ == "__main__":
    main()
