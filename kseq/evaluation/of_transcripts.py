"""Evaluation of generated transcripts against the right ones."""

from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.letters_heard import letters_heard
from kseq.evaluation.translations import Translations
from kseq.pictures import speech_picture


def of_transcripts(predictor, transcripts, metrics=(cer, wer, exact_match)):
    """The evaluation of recordings.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`; takes frames or WAV
            files.
        transcripts: `kseq.data.Transcripts`.
        metrics: functions of outputs and references, see `Score`.

    Returns:
        `Translations` whose sources are the names of recordings.
    """

    def draw(_, attention):
        return speech_picture(
            attention.weights,
            attention.source_tokens,
            attention.target_tokens,
            attention.picture,
        )

    def notes():
        if not transcripts.spans:
            return []
        return letters_heard(predictor, transcripts)

    return Translations(
        predictor,
        list(zip(transcripts.names, transcripts.texts, strict=True)),
        metrics,
        inputs=transcripts.raw(predictor.source),
        draw=draw,
        notes=notes,
    )
