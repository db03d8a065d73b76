"""The errors that a user can fix, what they say, and checks of arguments."""

import errno
import math
import numbers
import re
import sys

BELOW_ONE = math.nextafter(1.0, 0.0)  # the limit of [0, 1)
_LARGEST = 2**31 - 1  # of int32
# Around the reason of an error, TensorFlow names operations, and where they
# were made; the reasons of several operations are numbered.
_AROUND = re.compile(
    r"\s|Graph execution error|Detected at node|<stack traces"
    r"|\d+ root error\(s\) found|\d+ (successful operations|derived errors)"
)
_NUMBERED = re.compile(r"^ +\(\d+\) [A-Z_]+: +")
_OPERATION = re.compile(
    r"^(?:\[_Derived_\]|\{\{(?:function_)?node [^}]*\}\}| )+"
)
_LAST = re.compile(r" \[Op:[^\]]+\](?: name: .*)?")  # of all lines


class UserError(ValueError):
    """Its message is all that a command prints before it exits."""

    exit_code = 2


class ArgumentError(UserError):
    """An argument of a class or a function, which may come from an option."""


class RunError(UserError):
    """A run directory that cannot be used as requested."""


class DiskError(UserError):
    """A file that could not be written."""

    # Codes of an OSError that only more room, or another disk, helps.
    errnos = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

    exit_code = 4


def write_error(path, error):
    """The error of a file that cannot be written, which is to be raised.

    Args:
        path: of the file.
        error: OSError.

    Returns:
        `DiskError` if only more room helps, otherwise `UserError`.
    """
    kind = DiskError if error.errno in DiskError.errnos else UserError
    return kind(f"{path} cannot be written: {error.strerror}.")


def reasons_of(error):
    """What is wrong, as an error of TensorFlow says.

    Args:
        error: an exception, of `tf.errors` or any other.

    Returns:
        list of str, lines without the names of operations; may be empty.
    """
    text = str(getattr(error, "message", error))
    # From its last place alone: a message may quote a long text of a user.
    start = max(text.rfind(" [Op:"), 0)
    if _LAST.fullmatch(text, start):
        text = text[:start]
    lines = (_NUMBERED.sub("", line) for line in text.splitlines())
    reasons = (line for line in lines if not _AROUND.match(line))
    return list(filter(None, (_OPERATION.sub("", line) for line in reasons)))


def reason_of(error):
    """The first of `reasons_of`, or the name of the error."""
    return next(iter(reasons_of(error)), type(error).__name__)


def check_integers(*, minimum=1, maximum=_LARGEST, optional=False, **arguments):
    """Raises an error unless all arguments are integers in a range.

    Args:
        minimum: int.
        maximum: int; without one, the largest int32.
        optional: bool, whether None is valid too.
        **arguments: the values, under the names of the error message.

    Raises:
        ArgumentError: if a value is a bool, not an integer, or out of range.
    """
    limits = f"of at least {minimum} and at most {maximum}"
    if maximum != _LARGEST:
        limits = f"from {minimum} to {maximum}"
    for name, value in arguments.items():
        if optional and value is None:
            continue
        is_integer = isinstance(value, numbers.Integral)
        is_integer = is_integer and not isinstance(value, bool)
        if not is_integer or not minimum <= value <= maximum:
            raise ArgumentError(
                f"{name} must be an integer {limits}"
                f"{', or None' if optional else ''}. Received: {name}={value!r}"
            )


def check_seed(seed):
    """ArgumentError unless a seed is an integer, which may be negative."""
    check_integers(minimum=-(2**63), maximum=2**63 - 1, seed=seed)


def check_number(name, value, least, most, expected=None):
    """Raises an error unless a value is a number in a range.

    Args:
        name: str, of the argument.
        value: what was given.
        least: float.
        most: float.
        expected: str, the range in other words than its limits.

    Raises:
        ArgumentError: if it is a bool, not a number, or out of range.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # nan is not between
        expected = expected or f"a number from {least} to {most}"
        raise ArgumentError(
            f"{name} must be {expected}. Received: {name}={value!r}"
        )


def check_positive(**arguments):
    """ArgumentError unless all arguments are positive and finite numbers."""
    limits = math.ulp(0.0), sys.float_info.max, "positive and finite"
    for name, value in arguments.items():
        check_number(name, value, *limits)


def check_weights(**arguments):
    """ArgumentError unless all arguments are finite numbers of at least 0."""
    limits = 0, sys.float_info.max, "a finite number of at least 0"
    for name, value in arguments.items():
        check_number(name, value, *limits)


def check_choice(name, value, choices):
    """Raises an error unless a value is one of some.

    Args:
        name: str, of the argument.
        value: what was given.
        choices: the values that are valid, as the message shows them.

    Raises:
        ArgumentError: if it is none of them.
    """
    if value not in choices:
        raise ArgumentError(
            f"{name} must be one of {choices}. Received: {name}={value!r}"
        )
