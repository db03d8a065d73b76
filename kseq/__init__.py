"""Sequence-to-sequence and attention models in Keras 3.

Importing this package imports neither TensorFlow nor Keras; its parts do, when
they are first used.
"""

import importlib.util
import os
import sys

# Keras and TensorFlow read these once, when they are first imported.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

__version__ = "0.2.0.dev0"

_ROOMS = (
    "data",
    "decoding",
    "devices",
    "evaluation",
    "layers",
    "models",
    "ops",
    "pictures",
    "runs",
    "server",
    "serving",
    "training",
)
_FUNCTIONS = {
    "load": "kseq.serving",
    "run_recipe": "kseq.command_line.run_recipe",
}


def __getattr__(name):
    if name in _ROOMS:
        return _lazy_module(f"kseq.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'kseq' has no attribute {name!r}")


def __dir__():
    return [*globals(), *_FUNCTIONS, *_ROOMS]


def _lazy_module(name):
    """A module that is executed when its first attribute is read."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
