"""Sequence-to-sequence and attention models in Keras 3.

Importing this package imports neither TensorFlow nor Keras; its parts do, when
they are first used.
"""

import importlib
import os

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
    "serving",
    "training",
)


def __getattr__(name):
    if name == "load":
        return importlib.import_module("kseq.serving").load
    if name in _ROOMS:
        return importlib.import_module(f"kseq.{name}")
    raise AttributeError(f"module 'kseq' has no attribute {name!r}")


def __dir__():
    return [*globals(), "load", *_ROOMS]
