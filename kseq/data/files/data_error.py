"""The error of every file, text or vocabulary that cannot be used."""

from kseq.terminal import escaped_line
from kseq.user_error import UserError


class DataError(UserError):
    """An error in the user's data, in one message of one line.

    Example:
    >>> raise DataError("train.en is empty.")
    Traceback (most recent call last):
    kseq.data.files.data_error.DataError: train.en is empty.
    """

    def __init__(self, message: str):
        super().__init__(escaped_line(message))
