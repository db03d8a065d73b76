"""Keras and TensorFlow, imported in silence and without what they may use."""

import contextlib
import importlib
import os
import sys

# Where they are installed Keras and TensorFlow import them, for plots, wrappers
# and converters, which takes a second.
_OPTIONAL = ("jax", "matplotlib", "scipy", "sklearn")


def start_keras():
    """Imports Keras as a command needs it, which does not plot with Keras."""
    hidden = [name for name in _OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        with quiet_stderr():
            importlib.import_module("keras")
    finally:
        for name in hidden:
            del sys.modules[name]


@contextlib.contextmanager
def quiet_stderr():
    """Hides what TensorFlow's C++ prints whenever it is imported."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
