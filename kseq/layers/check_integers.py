"""A check of constructor arguments."""

import numbers

from kseq.user_error import ArgumentError


def check_integers(*, minimum=1, optional=False, **arguments):
    """Raises an error unless all arguments are integers of at least `minimum`.

    Args:
        minimum: int.
        optional: bool, whether None is valid too.
        **arguments: the values, under the names of the error message.

    Raises:
        ArgumentError: if a value is a bool, not an integer, or too small.
    """
    for name, value in arguments.items():
        if optional and value is None:
            continue
        is_integer = isinstance(value, numbers.Integral)
        if not is_integer or isinstance(value, bool) or value < minimum:
            raise ArgumentError(
                f"{name} must be an integer of at least {minimum}"
                f"{' or None' if optional else ''}. Received: {name}={value!r}"
            )
