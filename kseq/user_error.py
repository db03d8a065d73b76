"""The errors that the user of a command can fix."""

import errno


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
