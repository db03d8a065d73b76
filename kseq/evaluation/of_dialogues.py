"""Evaluation of answers in dialogues against those that were given."""

import math

from kseq.evaluation.bleu import bleu
from kseq.evaluation.distinct import distinct_1, distinct_2
from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.facts_found import facts_found
from kseq.evaluation.translations import Translations
from kseq.pictures import turn_attention_picture

METRICS = (bleu, distinct_1, distinct_2, exact_match)


def of_dialogues(predictor, dialogues, metrics=METRICS):
    """The evaluation of generated answers.

    Its report has the perplexity of the given answers, for each token and for
    each word: words are separated by white space, and END is one of both.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`; takes turns.
        dialogues: `kseq.data.Dialogues`.
        metrics: functions of outputs and references, see `Score`.

    Returns:
        `Translations` whose sources are the turns, separated by slashes.
    """
    sources = [" / ".join(turns) for turns in dialogues.contexts]

    def draw(_, attention):
        return turn_attention_picture(
            attention.weights,
            attention.source_tokens,
            attention.target_tokens,
        )

    def notes():
        lines = _perplexities(predictor, dialogues)
        if dialogues.evidence and "explain" in predictor.signatures:
            lines += facts_found(predictor, dialogues)
        return lines

    return Translations(
        predictor,
        list(zip(sources, dialogues.answers, strict=True)),
        metrics,
        inputs=dialogues.contexts,
        draw=draw,
        notes=notes,
    )


def _perplexities(predictor, dialogues):
    found = predictor.log_probs(dialogues.contexts, dialogues.answers)
    if found is None:
        return []
    log_probs, tokens = map(sum, zip(*found, strict=True))
    words = sum(len(answer.split()) + 1 for answer in dialogues.answers)
    each = [math.exp(-log_probs / count) for count in (tokens, words)]
    return [f"perplexity {each[0]:.2f} per token, {each[1]:.2f} per word"]
