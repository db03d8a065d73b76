"""What a model answers with, described once."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kseq.sources import TEXT, SourceType


@dataclasses.dataclass(frozen=True, eq=False)
class AnswerType:
    """What a model answers with: everything that depends on it.

    Commands, the server, loading, the model card and fine-tuning ask this
    object and compare no names. A task is what `task.json` of a run, or
    `kseq.json` of an export, says: a dict.

    Args:
        description: str, such a model in words.
        signatures: function of a `SourceType`; gives a dict, the names of the
            signatures -> their inputs and outputs in Markdown, where "{}" is
            the name of the input.
        outputs: set of names, outputs of `serving_default` by which an export
            is recognized.
        signature: str, name of a signature by which it is recognized.
        serve: function of a `kseq.loading.OpenedRun`; gives what is served,
            such as a `kseq.serving.Generator`.
        takes: function of a `SourceType`, whether such a model takes it.
        predictor: function of the signatures of an export and of the name of
            their input; gives an object of Python lists.
        fits_task: function of a task, whether it is one of such a model.
        is_intact: function of such a task, whether its values can be used.
        classes: str, the entry of a task with the classes of the model, a
            list of str; "" if it has none.
        without_search: str, what it answers with where that needs no search,
            in words; else "".
        text_source: `SourceType`, what a signature calls "text".
        evaluation: function of a predictor, a `SourceType`, the examples that
            it has read, and perhaps `metrics`; None if no file has any.
        check_examples: function of examples and a task; raises UserError
            where they do not fit, before a model is loaded.
        has_metrics: bool, whether metrics can be chosen.
        does: str, what such a model does, as `SourceType.task`; "" if the
            source says it.
        explains: function of the config of a model and a `SourceType`,
            whether the model has a signature `explain`.
        limits: function of a task; gives a list of sentences.
        classified: function of a `SourceType`; gives what gets one of the
            classes, in words.
        most_answers: function of a task; gives the largest number of answers
            to an input and why in words. None if the search decides.
        ranks_classes: bool, whether all classes are answers, with scores.
        refusals: dict, name of a signature that it never has -> the message.
        chats: bool, whether it answers to what is said.
        page_view: str, the module of the page that shows it; "" if that
            depends on the source.
    """

    description: str
    signatures: Callable[[SourceType], Mapping[str, str]]
    outputs: frozenset[str]
    serve: Callable[[Any], Any]
    predictor: Callable[[Any, str], Any]
    fits_task: Callable[[dict], bool]
    is_intact: Callable[[dict], bool]
    signature: str = "serving_default"
    takes: Callable[[SourceType], bool] = lambda source: True
    classes: str = ""
    without_search: str = ""
    text_source: SourceType = TEXT
    evaluation: Callable[..., Any] | None = None
    check_examples: Callable[[Any, dict], None] = lambda examples, task: None
    has_metrics: bool = False
    does: str = ""
    explains: Callable[[dict, SourceType], bool] = lambda config, source: True
    limits: Callable[[dict], list[str]] = lambda task: []
    classified: Callable[[SourceType], str] = lambda source: source.item
    most_answers: Callable[[dict], tuple[int | None, str]] | None = None
    ranks_classes: bool = False
    refusals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    chats: bool = False
    page_view: str = ""
