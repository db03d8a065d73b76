"""Callback output below the progress bar of Keras."""

import contextlib
import sys


@contextlib.contextmanager
def below_the_bar_of_keras():
    """Leaves the line of its progress bar free, which it overwrites."""
    if not sys.stdout.isatty():
        yield
        return
    print(flush=True)
    try:
        yield
    finally:
        print("\x1b[A", end="", flush=True)  # up
