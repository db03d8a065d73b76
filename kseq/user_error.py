"""The errors that the user of a command can fix, and a check of arguments."""

import errno
import numbers

_LARGEST = 2**31 - 1  # of int32


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
