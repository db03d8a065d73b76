"""kseq evaluate: answers to a file, judged by its references or labels."""

import sys

from kseq.commands.open_model import is_classifier, open_model
from kseq.data import ParallelText, read_documents
from kseq.evaluation import (
    classification_scores,
    map_lines,
    translation_scores,
)
from kseq.user_error import UserError

_CHUNK = 8  # batches between two signs of progress


def run(options):
    """Prints the scores of a translator or of a classifier."""
    model = open_model(options)
    evaluate = _evaluate_labels if is_classifier(model) else _evaluate_texts
    evaluate(model, options)


def _evaluate_texts(translator, options):
    """Prints BLEU and chrF with their signatures, and exact matches."""
    if options.reference is None:
        raise UserError(
            f"{options.path} is a translator: it needs SOURCE and REFERENCE."
        )
    text = ParallelText(options.source, options.reference)
    sources, references = list(text.source_lines()), list(text.target_lines())
    answers = _answers(translator.translate, sources, options.batch_size)
    outputs = [_decoded(answer["text"]) for answer in answers]
    scores = translation_scores(outputs, [_decoded(r) for r in references])
    print(f"BLEU {scores['bleu']:.2f}  {scores['bleu_signature']}")
    print(f"chrF {scores['chrf']:.2f}  {scores['chrf_signature']}")
    print(f"exact match {100 * scores['exact_match']:.2f} %")


def _evaluate_labels(classifier, options):
    """Prints accuracy, macro F1, and precision and recall of each label."""
    if options.reference is not None:
        raise UserError(
            f"{options.path} is a classifier: it needs one file of labels and "
            "texts."
        )
    documents = read_documents(options.source, options.columns)
    labels = classifier.classify([""])["labels"][0].numpy()
    labels = [_decoded(label) for label in labels]
    if unknown := set(documents.labels) - set(labels):
        raise UserError(
            f"{options.source} has labels that {options.path} does not know: "
            f"{', '.join(sorted(unknown))}"
        )
    answers = _answers(classifier.classify, documents.texts, options.batch_size)
    predicted = [_decoded(answer["label"]) for answer in answers]
    scores = classification_scores(documents.labels, predicted, labels)
    print(f"accuracy {100 * scores['accuracy']:.2f} %")
    print(f"macro F1 {scores['macro_f1']:.4f}")
    for label, of_label in scores["per_class"].items():
        numbers = "  ".join(f"{k} {v:.4g}" for k, v in of_label.items())
        print(f"{label}: {numbers}")


def _answers(function, lines, batch_size):
    answers = []
    size = _CHUNK * batch_size
    for start in range(0, len(lines), size):
        part = lines[start : start + size]
        answers += map_lines(function, part, batch_size=batch_size)
        print(f"{len(answers)} of {len(lines)} lines", file=sys.stderr)
    return answers


def _decoded(text):
    return text.decode("utf-8", "replace")
