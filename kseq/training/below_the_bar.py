"""Where callbacks of `fit` show their own progress."""

import contextlib
import sys


@contextlib.contextmanager
def below_the_bar_of_keras():
    """Leaves the line of its progress bar alone, which it writes to again."""
    if not sys.stdout.isatty():
        yield
        return
    print(flush=True)
    try:
        yield
    finally:
        print("\x1b[A", end="", flush=True)  # up
