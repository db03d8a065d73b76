"""The error of every file, text or vocabulary that cannot be used."""

import re

from kseq.user_error import UserError

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class DataError(UserError):
    """What is wrong with the user's data, in one message of one line.

    Example:
    >>> raise DataError("train.en is empty.")
    Traceback (most recent call last):
    kseq.data.data_error.DataError: train.en is empty.
    """

    def __init__(self, message: str):
        super().__init__(in_one_line(message))


def in_one_line(text: str) -> str:
    r"""Escapes control characters, which a file name may have.

    Example:
    >>> print(in_one_line("a\nb"))
    a\nb
    """
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
