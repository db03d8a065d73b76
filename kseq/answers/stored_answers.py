"""Answers that a model knows, of which it selects the nearest."""

from kseq import evaluation, serving
from kseq.answers.answer_type import AnswerType
from kseq.answers.text import (
    OUTPUTS,
    SIGNATURES,
    generator_predictor,
    has_lengths,
)

_SIGNATURES = {
    "serving_default": SIGNATURES["serving_default"],
    "n_best": SIGNATURES["n_best"],
    "score": "`{}`, `target` → `score` of any answer",
    "encode": "`{}` → `vector`",
    "encode_answers": "`text` of answers → `vector`",
}


def _serve(opened):
    target = opened.tokenizer("target")
    answers = opened.answers(opened.task["answers"])
    model = opened.model("encode_target", "source_vocab_size")
    opened.check_features(model)
    is_one = model.target_vocab_size is None
    size = "source_vocab_size" if is_one else "target_vocab_size"
    opened.check_vocabulary(model, "target", target, size)
    retriever = opened.made(
        opened.run.answers,
        serving.Retriever,
        model,
        opened.preprocessor,
        target,
        answers,
        max_length=opened.task["max_length"],
    )
    _ = retriever.index  # now, and not while it answers
    return retriever


def _most_answers(task):
    from kseq.serving.retriever import MOST_ANSWERS

    if type(task.get("answers")) is not int:
        return None, ""
    most = min(MOST_ANSWERS, task["answers"])
    return most, f"is more than the {most} answers that the model gives."


STORED_ANSWERS = AnswerType(
    description="A model that selects from known answers",
    signatures=lambda source: _SIGNATURES,
    outputs=OUTPUTS,
    signature="encode_answers",
    serve=_serve,
    predictor=generator_predictor,
    fits_task=lambda task: type(task.get("answers")) is int,
    is_intact=has_lengths,
    without_search="texts that it knows",
    evaluation=lambda predictor, source, examples: evaluation.Retrievals(
        predictor, examples
    ),
    limits=lambda task: [
        f"It always returns the nearest of {task['answers']:,} answers, "
        "even if none fits."
    ],
    most_answers=_most_answers,
    chats=True,
)
