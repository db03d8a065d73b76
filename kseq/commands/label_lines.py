"""Lines to labels, as `kseq predict` prints them."""

import json

import numpy as np

from kseq.training import explained_documents, map_lines


def label_lines(classifier, lines, options):
    """Labels lines, a document each.

    Args:
        classifier: see `open_model`.
        lines: list of bytes.
        options: of `kseq predict`.

    Returns:
        For each line a pair: what is printed, bytes, and whether the line
        had to be cut.
    """
    answers = map_lines(
        classifier.classify, lines, batch_size=options.batch_size
    )
    return [
        (_formatted(classifier, line, answer, options), answer["truncated"])
        for line, answer in zip(lines, answers, strict=True)
    ]


def _formatted(classifier, line, answer, options):
    labels = [label.decode() for label in answer["labels"]]
    probabilities = [round(float(p), 6) for p in answer["probabilities"]]
    if options.json:
        record = {
            "label": answer["label"].decode(),
            "probability": round(float(answer["probability"]), 6),
            "probabilities": dict(zip(labels, probabilities, strict=True)),
        }
        if options.attention:
            record["attention"] = _attention(classifier, line)
        return json.dumps(record, ensure_ascii=False).encode()

    columns = []
    for place in np.argsort(probabilities)[::-1][: options.n_best]:
        if options.scores:
            columns.append(f"{probabilities[place]:.4f}")
        columns.append(labels[place])
    return "\t".join(columns).encode()


def _attention(classifier, line):
    """Sentences and words with their weights."""
    [document] = explained_documents(classifier.explain([line]))
    return {
        "sentences": document.sentences,
        "sentence_weights": _rounded(document.sentence_weights),
        "words": document.words,
        "word_weights": [_rounded(row) for row in document.word_weights],
    }


def _rounded(weights):
    return [round(weight, 6) for weight in weights]
