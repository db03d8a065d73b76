"""Several generators, classifiers or taggers as one."""

from collections.abc import Mapping
from typing import Any

from kseq.decoding import Ensemble
from kseq.decoding.ensemble import source_stride
from kseq.serving.classifier import Classifier
from kseq.serving.generator import Generator
from kseq.serving.object_config import source_config
from kseq.serving.tagger import Tagger
from kseq.user_error import UserError

_CARD = """
## Ensemble

The probabilities are the mean of those of {names}. The scores above are those
of the first alone.
"""


def ensemble(served: Mapping[str, Any]) -> Generator | Classifier | Tagger:
    """Joins models into an ensemble, which averages their probabilities.

    The search and the stop strings are those of the first model; a limit is the
    strictest of all models.

    Args:
        served: dict, name, for messages -> `Generator`, `Classifier` or
            `Tagger`; two or more of one kind.

    Returns:
        One with a `kseq.decoding.Ensemble`, to be called, exported and served
        as any other.

    Raises:
        UserError: if one has other answers than texts, labels or tags, or two
            have different answers, tokenizers, preprocessors, labels or tags.
    """
    for name, each in served.items():
        if not isinstance(each, Generator | Classifier | Tagger):
            raise UserError(
                "An ensemble needs models that generate text, classifiers or "
                f"taggers; {name} is none of these."
            )
    (first_name, first), *others = served.items()
    for name, each in others:
        if what := _difference(first, each):
            raise UserError(
                f"{first_name} and {name} cannot be an ensemble: they have "
                f"different {what}."
            )
    if isinstance(first, Generator):
        joined = _generator([*served.values()])
    else:
        joined = _of_classes([*served.values()])
    if first.model_card:
        names = ", ".join(served)
        joined.model_card = first.model_card + _CARD.format(names=names)
    return joined


def _generator(generators):
    first = generators[0]
    return Generator(
        Ensemble([each.model for each in generators]),
        _shortest(generators),
        first.tokenizer,
        first.search,
        max_length=min(each.max_length for each in generators),
        training_length=max(each.training_length for each in generators),
        length_ratio=max(each.length_ratio for each in generators),
        stop=first.stop,
    )


def _of_classes(served):
    """A classifier or a tagger, whose models keep their own temperatures."""
    first = served[0]
    models = [each.model for each in served]
    joined = Ensemble(models, [each.temperature for each in served])
    names = first.tags if isinstance(first, Tagger) else first.labels
    return type(first)(joined, _shortest(served), names)


def _shortest(served):
    """The preprocessor whose inputs all of them read."""
    preprocessors = [each.preprocessor for each in served]
    return min(preprocessors, key=lambda each: getattr(each, "max_length", 0))


def _difference(first, second):
    """What two of them must have in common and do not; "" for nothing."""
    if type(first) is not type(second):
        return "answers"
    ours, theirs = first.tokenizers, second.tokenizers
    if ours.keys() != theirs.keys():
        return "sources"
    for name, tokenizer in ours.items():
        if tokenizer.model != theirs[name].model:
            return f"tokenizers ({name}.model)"
    configs = [source_config(each.preprocessor) for each in (first, second)]
    for config in configs:  # the shorter one is used
        config["preprocessor"].pop("max_length", None)
    if configs[0] != configs[1]:
        return "preprocessors"
    if isinstance(first, Tagger) and first.tags != second.tags:
        return "tags"
    if isinstance(first, Classifier):
        if first.labels != second.labels:
            return "labels"
        if source_stride(first.model) != source_stride(second.model):
            return "positions that they attend to"
    return ""
