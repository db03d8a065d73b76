"""Searches and preprocessors as JSON, and back."""

import inspect
from typing import TYPE_CHECKING, Any

import kseq
from kseq.data import Tokenizer
from kseq.runs import RunError
from kseq.serving.preprocessor import Preprocessor

if TYPE_CHECKING:  # most models have no search
    from kseq.decoding import Search

# Arguments that name a file or an address, and that no config has: weights
# are those of the run. A config may be untrusted.
_NOT_IN_CONFIGS = ("weights",)


def object_config(value: Any) -> dict[str, Any]:
    """The class and the arguments of a search or of a preprocessor.

    Args:
        value: has `get_config`; its class is one of `kseq.data` or
            `kseq.decoding`.

    Returns:
        A JSON-able dict.

    Example:
        >>> object_config(kseq.decoding.GreedySearch())["class"]
        'GreedySearch'
    """
    config = value.get_config()
    if constraints := getattr(value, "constraints", ()):
        # A user's own function has a name and nothing else.
        config["constraints"] = [
            object_config(constraint)
            if hasattr(constraint, "get_config")
            else name
            for constraint, name in zip(
                constraints, config["constraints"], strict=True
            )
        ]
    return {"class": type(value).__name__, **config}


def source_config(preprocessor: Preprocessor) -> dict[str, Any]:
    """What `task.json` says of a preprocessor: a JSON-able dict."""
    name = preprocessor.input_name
    return {
        **({} if name == "text" else {"input": name}),
        "preprocessor": object_config(preprocessor),
    }


def preprocessor_from_config(
    config: dict[str, Any], *tokenizers: Tokenizer
) -> Preprocessor:
    """The preprocessor that `object_config` described.

    Args:
        config: dict of `object_config`.
        *tokenizers: a `kseq.data.Tokenizer`, if it reads text.

    Raises:
        RunError: if the dict describes no preprocessor.
    """
    return _object(config, kseq.data, "input_signature", *tokenizers)


def search_from_config(config: dict[str, Any]) -> "Search":
    """The search that `object_config` described.

    Args:
        config: dict of `object_config`.

    Raises:
        RunError: if the dict describes no search.
    """
    return _object(config, kseq.decoding, "most_answers")


def _object(config, room, attribute, *arguments):
    """Creates an object of a class of a package that has an attribute.

    Nothing else is called, whatever a file says.
    """
    try:
        options = dict(config)
        name = options.pop("class")
        found = getattr(room, name) if name in room.__all__ else None
        if not isinstance(found, type) or not hasattr(found, attribute):
            raise ValueError(f"no class {name}")
        if constraints := options.pop("constraints", ()):
            options["constraints"] = tuple(
                _object(constraint, room, "get_config")
                for constraint in constraints
            )
        _check_types(inspect.signature(found).parameters, options)
        return found(*arguments, **options)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunError(
            f"Expected the config of a search or preprocessor: {error!r}. "
            f"Received: {config!r:.200}"
        ) from error


def _check_types(parameters, options):
    """Raises ValueError for a value of another type, or not of a config."""
    for name, value in options.items():
        if name in _NOT_IN_CONFIGS:
            raise ValueError(f"{name}={value!r:.50}")
        default = getattr(parameters.get(name), "default", None)
        if type(default) not in (int, bool, str):
            continue
        is_other = type(value) is not type(default)
        if is_other or (type(value) is int and abs(value) >= 2**31):
            raise ValueError(f"{name}={value!r:.50}")
