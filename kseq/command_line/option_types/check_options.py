"""Checks of the options of a recipe, one by one and together."""

import dataclasses
from types import UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from kseq.command_line.option_types.value_types import (
    MultipleOf,
    option,
)
from kseq.user_error import UserError

# Types of which no value of another type is valid: 8.0, or true for 1.
_WHOLE = {bool: "true or false", int: "an integer"}


def check_options(config):
    """Checks a recipe's config.

    A class of options whose values may not fit each other has a method
    `check`, which raises the error.

    Args:
        config: a dataclass instance, with fields of these types or of any
            others, which are not checked.

    Raises:
        UserError: that names the first wrong option.

    Example:
        >>> import dataclasses
        >>> from kseq.command_line.option_types import PositiveInt
        >>> @dataclasses.dataclass
        ... class Config:
        ...     steps: PositiveInt = 100
        >>> check_options(Config(steps=0))
        Traceback (most recent call last):
            ...
        kseq.user_error.UserError: --steps: expected an integer of at least 1 \
and at most 2147483647. Received: 0
    """
    hints = get_type_hints(type(config), include_extras=True)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        hint = without_none(hints[field.name])
        if hint != hints[field.name] and value is None:
            continue
        choices = get_args(hint)
        if get_origin(hint) is Literal and value not in choices:
            raise UserError(
                f"{option(field.name)}: expected one of "
                f"{', '.join(map(str, choices))}. Received: {value!r}"
            )
        kind = getattr(hint, "__origin__", hint)
        if kind in _WHOLE and type(value) is not kind:
            raise UserError(
                f"{option(field.name)}: expected {_WHOLE[kind]}. "
                f"Received: {value!r}"
            )
        for rule in getattr(hint, "__metadata__", ()):
            if not hasattr(rule, "check"):
                continue  # of the user, about something else
            others = ()
            if isinstance(rule, MultipleOf):
                others = (getattr(config, rule.other),)
            if wrong := rule.check(value, *others):
                raise UserError(
                    f"{option(field.name)}: {wrong}. Received: {value!r}"
                )
    for kind in type(config).__mro__:
        if check := vars(kind).get("check"):
            check(config)


def without_none(hint):
    """The type of an option that may be None: `int | None` is `int`."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else hint


def refuse_unread(config, given):
    """Refuses options that nothing reads because of what others choose.

    A class of options, or a recipe, says in a method `unread` which these are:
    it yields what they need, and the names of their fields.

    Args:
        config: a dataclass instance.
        given: dict, field -> value of the options that are given. A value that
            switches something off, as 0 does, is true without it, too.

    Raises:
        UserError: that names the first such option.
    """
    for kind in type(config).__mro__:
        unread = vars(kind).get("unread", lambda config: ())
        for needs, names in unread(config):
            for name in filter(given.get, names):
                raise UserError(f"{option(name)} needs {needs}.")
