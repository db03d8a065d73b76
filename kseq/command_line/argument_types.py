"""Conversion of the words of a command line to values."""

import argparse
import functools
import os
from pathlib import Path
from typing import Annotated, get_args, get_origin

from kseq.command_line.option_types import MultipleOf
from kseq.data.files.url_files import is_url
from kseq.files.built_in import is_built_in, recipe_and_run
from kseq.files.hub import is_hub
from kseq.files.model_path import is_model_name, model_path
from kseq.terminal import single_line
from kseq.user_error import UserError

_NAMES = {int: "an integer", float: "a number"}


def reader(hint):
    """Returns a converter to a type, for `argparse`.

    Args:
        hint: int, float, str or another class that takes a str, or such a
            type of `kseq.command_line.option_types`.

    Returns:
        A callable, str -> value.

    Example:
        >>> from kseq.command_line.option_types import PositiveInt
        >>> reader(PositiveInt)("3")
        3
    """
    kind, rules = hint, ()
    if get_origin(hint) is Annotated:
        kind, *rules = get_args(hint)

    def read(text):
        if not text:
            raise argparse.ArgumentTypeError("the value is empty")
        wrong = f"expected {_NAMES.get(kind, kind.__name__)}"
        try:
            value = kind(text)
        except ValueError:
            raise _refusal(wrong, text) from None
        for rule in rules:
            # A rule about two options is checked with both: see check_options.
            if not isinstance(rule, MultipleOf) and (
                wrong := rule.check(value)
            ):
                raise _refusal(wrong, text)
        return value

    return read


def checked(function):
    """The same function of a str, with errors as `argparse` expects them."""

    def check(text):
        try:
            return function(text)
        except UserError as error:
            raise argparse.ArgumentTypeError(single_line(error)) from None

    return check


@checked
def existing_file(text):
    """The path of a file that exists and can be read more than once.

    A URL is returned as it is; its file is copied later.
    """
    if is_url(text):
        return text
    path = Path(text)
    try:
        is_there, is_file = path.exists(), path.is_file()
    except (OSError, ValueError):  # no permission, a name too long, NUL
        is_there = is_file = False
    if is_there and path.is_dir():
        raise UserError(f"{text!r} is a directory; give the path of a file")
    if is_there and not is_file:
        raise UserError(
            f"{text!r} is a pipe or a device; write it to a file first"
        )
    if not is_file:
        raise UserError(f"there is no file {text!r}")
    return path


def existing_path(text):
    """The same, or that of a folder of texts, or one that is a table."""
    return Path(text) if os.path.isdir(text) else existing_file(text)


@checked
def output_file(text):
    """The path of a file to be written, which may exist.

    A device would become a file: what is written replaces it.
    """
    if not text:
        raise UserError("the value is empty")
    if is_url(text):
        raise UserError("expected a local file: nothing is written to URLs")
    path = Path(text)
    try:
        if path.is_dir():
            raise UserError(f"{text!r} is a directory; give the path of a file")
        if not path.parent.is_dir():
            raise UserError(f"there is no folder {str(path.parent)!r}")
        if path.exists() and not path.is_file():
            raise UserError(f"{text!r} is a pipe or a device")
    except OSError as error:
        raise UserError(f"{text!r}: {error.strerror}") from None
    return path


@checked
def existing_folder(text):
    """The path of a folder that exists.

    A model on the hub is returned as it is; it is copied later.
    """
    if is_hub(text):
        return text
    if not os.path.isdir(text):
        raise UserError(f"there is no folder {text!r}")
    return Path(text)


def model(find):
    """Returns a converter to the path of a model, for `argparse`.

    To copy or to train a model takes minutes: one that is given by its name is
    found after all options have been read, by `find_models`.

    Args:
        find: `model_path` or `run_path`.

    Returns:
        A callable, str -> path, or a function without arguments that finds it.
    """

    def read(text):
        if not is_model_name(text):
            return find(text)
        if is_built_in(text):
            recipe_and_run(text)  # raises an error if there is none
        return functools.partial(find, text)

    return checked(read)


def model_or_file(text):
    """The path of a file, or what `model` reads."""
    is_file = os.path.exists(text) and not os.path.isdir(text)  # or a pipe
    if is_file or (is_url(text) and not is_model_name(text)):
        return existing_file(text)
    return model(model_path)(text)


def find_models(options):
    """Replaces the models given by their names by paths.

    Args:
        options: of a command, whose attributes are set.

    Raises:
        UserError: see `model_path`.
    """

    def found(value):
        if isinstance(value, list):
            return [found(each) for each in value]
        return value() if isinstance(value, functools.partial) else value

    for name, value in vars(options).items():
        setattr(options, name, found(value))


def _refusal(wrong, text):
    return argparse.ArgumentTypeError(f"{wrong}. Received: {text!r}")
