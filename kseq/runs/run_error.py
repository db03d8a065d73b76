"""Errors in the files of runs."""

from kseq.user_error import UserError


class RunError(UserError):
    """A run directory that cannot be used as requested."""
