"""Several generators or classifiers as one."""

from collections.abc import Mapping
from typing import Any

from kseq.decoding import Ensemble
from kseq.decoding.ensemble import source_stride
from kseq.serving.classifier import Classifier
from kseq.serving.generator import Generator
from kseq.serving.object_config import source_config
from kseq.user_error import UserError

_CARD = """
## Ensemble

The probabilities are the mean of those of {names}. The scores above are those
of the first alone.
"""


def ensemble(served: Mapping[str, Any]) -> Generator | Classifier:
    """A generator or classifier whose probabilities are the mean of others'.

    The search and the strings that end an answer are those of the first; the
    limits are those that all of them keep.

    Args:
        served: dict, name, for messages -> `Generator` or `Classifier`; two or
            more of one kind.

    Returns:
        One with a `kseq.decoding.Ensemble`, to be called, exported and served
        as any other.

    Raises:
        UserError: if one neither generates text nor gives labels, or two have
            different answers, tokenizers, preprocessors or labels.
    """
    for name, each in served.items():
        if not isinstance(each, Generator | Classifier):
            raise UserError(
                "An ensemble is of models that generate text, or of "
                f"classifiers; {name} is neither."
            )
    (first_name, first), *others = served.items()
    for name, each in others:
        if what := _difference(first, each):
            raise UserError(
                f"{first_name} and {name} cannot be an ensemble: they have "
                f"different {what}."
            )
    join = _generator if isinstance(first, Generator) else _classifier
    joined = join([*served.values()])
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


def _classifier(classifiers):
    first = classifiers[0]
    models = [each.model for each in classifiers]
    temperatures = [each.temperature for each in classifiers]
    joined = Ensemble(models, temperatures)
    return Classifier(joined, _shortest(classifiers), first.labels)


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
    if isinstance(first, Classifier):
        if first.labels != second.labels:
            return "labels"
        if source_stride(first.model) != source_stride(second.model):
            return "positions that they attend to"
    return ""
