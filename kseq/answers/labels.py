"""A label as the answer, for anything that a model reads."""

from kseq import evaluation, serving
from kseq.answers.answer_type import AnswerType
from kseq.files.json_files import are_strings
from kseq.sources import DOCUMENTS


def _signatures(source):
    explanation = "`source_tokens`, `target_tokens`, `attention`"
    if source.has_tokenizer:
        explanation = "`sentences`, `words`, `sentence_weights`, `word_weights`"
    found = {
        "serving_default": (
            "`{}` → `label`, `probability`, `labels`, `probabilities`, "
            "`truncated`"
        ),
        "explain": f"`{{}}` → {explanation}, `label`, `probability`",
    }
    if source.types or source.is_file:  # strings
        found["classify"] = (
            "`inputs`, serialized `tf.train.Example` → `classes`, `scores`"
        )
    return found


def has_classes(name):
    """A function of a task, whether an entry is a list of str."""
    return lambda task: are_strings(task[name])


def _serve(opened):
    model = opened.model("explain", "vocab_size")
    opened.check_features(model)
    return opened.made(
        opened.task_path,
        serving.Classifier,
        model,
        opened.preprocessor,
        opened.task["labels"],
        opened.temperature,
    )


def _predictor(signatures, source):
    return serving.ClassifierPredictor(signatures, source=source)


def _evaluation(predictor, source, examples):
    if not source.has_tokenizer:
        examples = examples.labelled(source.name)
    return evaluation.Classifications(predictor, examples)


def _check_examples(examples, task):
    from kseq.evaluation.classifications import check_labels

    if isinstance(labels := task.get("labels"), list):
        check_labels(examples, labels)


def _most_answers(task):
    labels = task.get("labels")
    most = len(labels) if isinstance(labels, list) else None
    return most or None, f"is more than the {most} labels of the model."


LABELS = AnswerType(
    description="A model that answers with a label",
    signatures=_signatures,
    outputs=frozenset(
        ("label", "probability", "labels", "probabilities", "truncated")
    ),
    serve=_serve,
    predictor=_predictor,
    fits_task=lambda task: "labels" in task,
    is_intact=has_classes("labels"),
    classes="labels",
    without_search="labels",
    text_source=DOCUMENTS,
    evaluation=_evaluation,
    check_examples=_check_examples,
    does="This model answers with a label",
    most_answers=_most_answers,
    ranks_classes=True,
    page_view="classifier",
    refusals={
        "score": "score is for models that generate text; for labels use "
        "predict --scores.",
        "prefix": "--prefix is for models that generate text; this one "
        "predicts labels.",
    },
)
