"""Searches and preprocessors as JSON, and back."""

import kseq.data
import kseq.decoding
from kseq.runs import RunError


def object_config(value):
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
        config["constraints"] = [object_config(c) for c in constraints]
    return {"class": type(value).__name__, **config}


def object_from_config(config, *arguments):
    """The object that `object_config` described.

    Only what `kseq.data` and `kseq.decoding` export can be named, so that
    nothing else is called, whatever a file says.

    Args:
        config: dict of `object_config`.
        *arguments: those of the constructor that the dict does not have.

    Raises:
        RunError: if the dict describes no such object.
    """
    try:
        config = dict(config)
        name = config.pop("class")
        rooms = (kseq.data, kseq.decoding)
        [room] = [room for room in rooms if name in room.__all__]
        if constraints := config.pop("constraints", ()):
            config["constraints"] = tuple(map(object_from_config, constraints))
        return getattr(room, name)(*arguments, **config)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"Expected the config of a search or preprocessor: {error!r}. "
            f"Received: {config!r:.200}"
        ) from error
