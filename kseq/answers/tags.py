"""A tag for each word as the answer."""

from kseq import evaluation, serving
from kseq.answers.answer_type import AnswerType
from kseq.answers.labels import has_classes
from kseq.sources import TEXT, WORDS

_SIGNATURES = {
    "serving_default": "`{}` → `words`, `tags`, `probabilities`, `truncated`",
    "distribution": (
        "`{}` → `words`, `tagset`, `probabilities` of all tags, `truncated`"
    ),
}


def _serve(opened):
    model = opened.model("num_tags", "vocab_size")
    return opened.made(
        opened.task_path,
        serving.Tagger,
        model,
        opened.preprocessor,
        opened.task["tags"],
        opened.temperature,
    )


def _check_examples(sentences, task):
    from kseq.evaluation.taggings import check_tags

    if isinstance(tags := task.get("tags"), list):
        check_tags(sentences, tags)


TAGS = AnswerType(
    description="A model that tags each word",
    signatures=lambda source: _SIGNATURES,
    outputs=frozenset(("words", "tags", "probabilities", "truncated")),
    serve=_serve,
    predictor=lambda signatures, source: serving.TaggerPredictor(signatures),
    takes=lambda source: source.name == TEXT.name,
    fits_task=lambda task: "tags" in task,
    is_intact=has_classes("tags"),
    classes="tags",
    without_search="tags",
    text_source=WORDS,
    evaluation=lambda predictor, source, sentences: evaluation.Taggings(
        predictor, sentences
    ),
    check_examples=_check_examples,
    does="This model tags words",
    classified=lambda source: "word",
    page_view="tagger",
)
