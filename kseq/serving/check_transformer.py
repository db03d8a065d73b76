"""Whether other toolkits can compute a Transformer."""

from typing import Any

from kseq.models import Transformer
from kseq.serving.generator import Generator
from kseq.user_error import UserError


def check_transformer(
    generator: Generator, toolkit: str, **supported: tuple[Any, ...]
) -> None:
    """UserError for a model that another toolkit does not compute.

    Args:
        generator: `kseq.serving.Generator`.
        toolkit: str, its name.
        **supported: values of attributes of the model, a tuple of each.
    """
    model = generator.model
    if not isinstance(model, Transformer):
        found = f"the class {type(model).__name__}"
    elif generator.preprocessor.input_name != "text":
        found = f"a source of {generator.preprocessor.input_name}"
    elif model.source_layer is not None or model.window is not None:
        found = "a layer before the encoder, or windows of self-attention"
    elif others := _others(model, supported):
        found = "; ".join(others)
    else:
        return
    raise UserError(
        f"{toolkit} runs only text-to-text Transformers. This model has "
        f"{found}."
    )


def _others(model, supported):
    """Choices that are not supported, and those that are."""
    return [
        f"{name}={value!r} instead of {' or '.join(map(repr, values))}"
        for name, values in supported.items()
        if (value := getattr(model, name)) not in values
    ]
