"""Evaluation of generated captions against their references."""

from kseq.evaluation.bleu import bleu
from kseq.evaluation.chrf import chrf
from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.objects_found import objects_found
from kseq.evaluation.translations import Translations
from kseq.pictures import grid_picture


def of_captions(predictor, captions, metrics=(bleu, chrf, exact_match)):
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
        picture = captions.picture and captions.picture(name)
        return grid_picture(
            attention.weights,
            attention.source_tokens,
            attention.target_tokens,
            picture,
        )

    def notes():
        return objects_found(predictor, captions) if captions.objects else []

    return Translations(
        predictor,
        list(zip(captions.names, captions.references, strict=True)),
        metrics,
        inputs=captions.raw(predictor.source),
        draw=draw,
        notes=notes,
    )
