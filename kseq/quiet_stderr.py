"""Silence while TensorFlow starts."""

import contextlib
import os


@contextlib.contextmanager
def quiet_stderr():
    """Hides what TensorFlow's C++ has to say whenever it is imported."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
