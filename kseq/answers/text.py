"""Answers that are texts, which a search finds."""

import contextlib

from kseq import evaluation, serving
from kseq.answers.answer_type import AnswerType
from kseq.user_error import ArgumentError, check_integers

SIGNATURES = {
    "serving_default": "`{}` → `text`, `score`, `truncated`",
    "n_best": "`{}` → `texts`, `scores`, `truncated`, the best first",
    "prefix": "`{}`, `prefix` → the same, of answers that begin so",
    "score": (
        "`{}`, `target` → `score`, `log_prob`, `tokens` of an answer, and its "
        "`target_tokens`, `token_log_probs`"
    ),
    "explain": (
        "`{}` → the same as `serving_default`, `source_tokens`, "
        "`target_tokens`, `attention`"
    ),
}
OUTPUTS = frozenset({"text", "score", "truncated"})


def has_lengths(task):
    """Whether the lengths in a task can be used."""
    with contextlib.suppress(ArgumentError):
        check_integers(max_length=task.get("max_length"), minimum=2)
        trained = task.get("training_length", 0)
        check_integers(training_length=trained, minimum=0)
        ratio = task.get("length_ratio", 0.0)
        return isinstance(ratio, float) and 0 <= ratio <= 1000
    return False


def generator_predictor(signatures, source):
    """The predictor of an export that answers with texts."""
    return serving.GeneratorPredictor(signatures, source=source)


def _serve(opened):
    target = opened.tokenizer("target")
    search = opened.search
    model = opened.model("decode_step", "source_vocab_size")
    opened.check_features(model)
    opened.check_vocabulary(model, "target", target, "target_vocab_size")
    task = opened.task
    return opened.made(
        opened.run.path,
        serving.Generator,
        model,
        opened.preprocessor,
        target,
        search,
        max_length=task["max_length"],
        training_length=task.get("training_length", 0),
        length_ratio=task.get("length_ratio", 0.0),
        stop=task.get("stop", ()),
    )


def _evaluation(predictor, source, examples, **metrics):
    return getattr(evaluation, source.evaluation)(
        predictor, examples, **metrics
    )


def _signatures(source):
    found = dict(SIGNATURES)
    if source.has_sentences:
        found["paragraphs"] = (
            "`{}` → `text`, `truncated`, answered by sentences"
        )
    if source.has_many_answers:
        found["sample"] = (
            "`{}`, `temperature`, `top_p`, `seed` → the same as `explain` or "
            "`serving_default`, of an answer drawn at random"
        )
    return found


def _limits(task):
    if "max_length" not in task:
        return []
    return [
        f"An answer has at most {task['max_length']} tokens. It can be "
        "fluent and wrong."
    ]


TEXT = AnswerType(
    description="A model that answers with a text",
    signatures=_signatures,
    outputs=OUTPUTS,
    serve=_serve,
    predictor=generator_predictor,
    fits_task=lambda task: True,
    is_intact=has_lengths,
    evaluation=_evaluation,
    has_metrics=True,
    explains=lambda config, source: (
        config.get("attention", "") is not None and not source.continues
    ),
    limits=_limits,
    chats=True,
)
