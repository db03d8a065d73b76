"""Lines to labels, as `kseq predict` prints them."""

import json

import numpy as np

from kseq.evaluation import map_lines
from kseq.serving import explained_document


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
    functions = [classifier.classify]
    if options.attention:
        functions.append(classifier.explain)

    def answer(text):
        return {k: v for f in functions for k, v in f(text).items()}

    answers = map_lines(answer, lines, batch_size=options.batch_size)
    return [(_formatted(a, options), bool(a["truncated"])) for a in answers]


def _formatted(answer, options):
    labels = [label.decode() for label in answer["labels"]]
    probabilities = [round(float(p), 6) for p in answer["probabilities"]]
    if options.json:
        record = {
            "label": answer["label"].decode(),
            "probability": round(float(answer["probability"]), 6),
            "probabilities": dict(zip(labels, probabilities, strict=True)),
        }
        if options.attention:
            record["attention"] = _attention(answer)
        return json.dumps(record, ensure_ascii=False).encode()

    columns = []
    for place in np.argsort(probabilities)[::-1][: options.n_best]:
        if options.scores:
            columns.append(f"{probabilities[place]:.4f}")
        columns.append(labels[place])
    return "\t".join(columns).encode()


def _attention(answer):
    """Sentences and words with their weights."""
    document = explained_document(answer)
    return {
        "sentences": document.sentences,
        "sentence_weights": _rounded(document.sentence_weights),
        "words": document.words,
        "word_weights": [_rounded(row) for row in document.word_weights],
    }


def _rounded(weights):
    return [round(weight, 6) for weight in weights]
