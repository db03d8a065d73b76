"""Bits as the answer, for each vector of a sequence."""

from kseq import serving
from kseq.answers.answer_type import AnswerType
from kseq.sources import VECTORS as SEQUENCES
from kseq.sources import source_of_task

_SIGNATURES = {
    "serving_default": "`{}` → `probabilities` of bits",
    "explain": "`{}` → `probabilities`, `read_weights`, `write_weights`",
}


def _serve(opened):
    model = opened.model("weightings")
    return opened.made(
        opened.task_path, serving.Transducer, model, opened.preprocessor
    )


VECTORS = AnswerType(
    description="A model that answers with bits",
    signatures=lambda source: _SIGNATURES,
    outputs=frozenset({"probabilities"}),
    serve=_serve,
    predictor=lambda signatures, source: serving.TransducerPredictor(
        signatures
    ),
    takes=lambda source: source is SEQUENCES,
    fits_task=lambda task: source_of_task(task) is SEQUENCES,
    is_intact=lambda task: True,
    without_search="bits",
    page_view="form",
    explains=lambda config, source: (
        config["cell"]["class_name"] == "NeuralTuringMachine"
    ),
)
