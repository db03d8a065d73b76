"""Untrusted files, which may be pipes or devices."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path):
    """The bytes of a file.

    Raises:
        OSError: see `check_regular`, or if it cannot be read.
    """
    check_regular(path)
    return Path(path).read_bytes()


def check_regular(path):
    """Raises OSError for a pipe, which blocks, or a device such as /dev/zero.

    So does a missing file.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        reason = "it is a pipe, a device or a socket, not a file"
        raise OSError(errno.EINVAL, reason, os.fspath(path))
