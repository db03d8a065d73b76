"""A full disk, and other files that cannot be written."""

from kseq.user_error import UserError


class DiskError(UserError):
    """A file that could not be written."""

    exit_code = 4
