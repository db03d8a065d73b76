"""Several generators as one."""

from collections.abc import Mapping
from typing import Any

from kseq.decoding import Ensemble
from kseq.serving.generator import Generator
from kseq.serving.object_config import source_config
from kseq.user_error import UserError

_CARD = """
## Ensemble

The probabilities are the mean of those of {names}. The scores above are those
of the first alone.
"""


def ensemble(generators: Mapping[str, Any]) -> Generator:
    """A generator whose probabilities are the mean of those of others.

    Its search and the strings that end an answer are those of the first; its
    limits are those that all of them keep.

    Args:
        generators: dict, name, for messages -> `Generator`; two or more.

    Returns:
        A `Generator` with a `kseq.decoding.Ensemble`, to be called, exported
        and served as any other.

    Raises:
        UserError: if one does not generate text, or two have different
            tokenizers or preprocessors.
    """
    for name, generator in generators.items():
        if not isinstance(generator, Generator):
            raise UserError(
                f"An ensemble is of models that generate text; {name} is not "
                "one."
            )
    (first_name, first), *others = generators.items()
    for name, generator in others:
        if what := _difference(first, generator):
            raise UserError(
                f"{first_name} and {name} cannot be an ensemble: they have "
                f"different {what}."
            )
    all_of_them = generators.values()
    preprocessors = [each.preprocessor for each in all_of_them]
    joined = Generator(
        Ensemble([each.model for each in all_of_them]),
        min(preprocessors, key=lambda each: getattr(each, "max_length", 0)),
        first.tokenizer,
        first.search,
        max_length=min(each.max_length for each in all_of_them),
        training_length=max(each.training_length for each in all_of_them),
        length_ratio=max(each.length_ratio for each in all_of_them),
        stop=first.stop,
    )
    if first.model_card:
        names = ", ".join(generators)
        joined.model_card = first.model_card + _CARD.format(names=names)
    return joined


def _difference(first, second):
    """What two generators must have in common and do not; "" for nothing."""
    ours, theirs = first.tokenizers, second.tokenizers
    if ours.keys() != theirs.keys():
        return "sources"
    for name, tokenizer in ours.items():
        if tokenizer.model != theirs[name].model:
            return f"tokenizers ({name}.model)"
    configs = [source_config(each.preprocessor) for each in (first, second)]
    for config in configs:  # the shorter one is used
        config["preprocessor"].pop("max_length", None)
    return "preprocessors" if configs[0] != configs[1] else ""
