"""The errors of files, texts and vocabularies that cannot be used."""

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


class ReadError(DataError):
    """A file cannot be read now; what is in it may be right."""
