"""Evaluations of the texts that are generated for other inputs than a text."""

import math

from kseq.evaluation.attention_on_evidence import (
    attention_on_facts,
    attention_on_letters,
    attention_on_objects,
)
from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.metrics import (
    bleu,
    chrf,
    distinct_1,
    distinct_2,
    exact_match,
)
from kseq.evaluation.translations import Translations
from kseq.pictures import turn_attention_picture


def caption_evaluation(predictor, captions, metrics=(bleu, chrf, exact_match)):
    """The evaluation of pictures, each with several references.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`; takes features or
            encoded pictures.
        captions: `kseq.data.Captions`.
        metrics: functions of outputs and references, see `Score`.

    Returns:
        `Translations` whose sources are the names of pictures.
    """

    def draw(name, attention):
        picture = captions.picture(name) if captions.picture else b""
        return attention._replace(picture=picture)._repr_png_()

    def notes():
        if not captions.objects or "explain" not in predictor.signatures:
            return []
        return attention_on_objects(predictor, captions)

    return Translations(
        predictor,
        list(zip(captions.names, captions.references, strict=True)),
        metrics,
        inputs=captions.raw(predictor.source),
        draw=draw,
        notes=notes,
    )


def dialogue_evaluation(
    predictor, dialogues, metrics=(bleu, distinct_1, distinct_2, exact_match)
):
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
            lines += attention_on_facts(predictor, dialogues)
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


def transcript_evaluation(
    predictor, transcripts, metrics=(cer, wer, exact_match)
):
    """The evaluation of recordings.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`; takes frames or WAV
            files.
        transcripts: `kseq.data.Transcripts`.
        metrics: functions of outputs and references, see `Score`.

    Returns:
        `Translations` whose sources are the names of recordings.
    """

    def notes():
        if not transcripts.spans:
            return []
        return attention_on_letters(predictor, transcripts)

    return Translations(
        predictor,
        list(zip(transcripts.names, transcripts.texts, strict=True)),
        metrics,
        inputs=transcripts.raw(predictor.source),
        notes=notes,
    )
