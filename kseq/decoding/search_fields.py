"""Fields of searches and constraints: checks and configuration."""

import dataclasses
from typing import TYPE_CHECKING, Any

from kseq.user_error import check_number

if TYPE_CHECKING:
    from kseq.decoding import Search


def check_common_fields(search: "Search") -> None:
    """Checks the fields that every search has; constraints become a tuple."""
    check_number("length_penalty", search.length_penalty, 0, 10)
    check_number("penalty_offset", search.penalty_offset, 0, 1000)
    check_number("ctc_weight", search.ctc_weight, 0, 1)
    constraints = search.constraints
    if not isinstance(constraints, tuple | list) or not all(
        callable(constraint) for constraint in constraints
    ):
        raise ValueError(
            "constraints must be a tuple of callables. "
            f"Received: constraints={constraints}"
        )
    object.__setattr__(search, "constraints", tuple(constraints))


def common_fields(search: "Search") -> dict[str, Any]:
    """The fields that every search has, for another search."""
    names = ("length_penalty", "penalty_offset", "ctc_weight", "constraints")
    return {name: getattr(search, name) for name in names}


def config_of(search: "Search") -> dict[str, Any]:
    """The fields of a search for JSON, its constraints as their configs.

    A constraint without a config is given by its name.
    """
    names = [field.name for field in dataclasses.fields(search)]
    config = {name: getattr(search, name) for name in names}
    config["constraints"] = [
        constraint.get_config()
        if hasattr(constraint, "get_config")
        else getattr(constraint, "__name__", type(constraint).__name__)
        for constraint in search.constraints
    ]
    return config
