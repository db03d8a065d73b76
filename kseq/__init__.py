"""Sequence-to-sequence and attention models in Keras 3.

Importing this package imports neither TensorFlow nor Keras; its parts do, when
they are first used.
"""

import os
from typing import TYPE_CHECKING

from kseq.lazy_package import import_name, lazy_module

if TYPE_CHECKING:  # for editors
    from kseq import data as data
    from kseq import decoding as decoding
    from kseq import devices as devices
    from kseq import evaluation as evaluation
    from kseq import layers as layers
    from kseq import loading as loading
    from kseq import models as models
    from kseq import ops as ops
    from kseq import pictures as pictures
    from kseq import runs as runs
    from kseq import server as server
    from kseq import serving as serving
    from kseq import training as training
    from kseq.command_line.run_recipe import run_recipe as run_recipe
    from kseq.loading.load import load as load
    from kseq.loading.load_run import load_run as load_run

# Keras and TensorFlow read these once, when they are first imported.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

__version__ = "0.3.0"

_ROOMS = (
    "data",
    "decoding",
    "devices",
    "evaluation",
    "layers",
    "loading",
    "models",
    "ops",
    "pictures",
    "runs",
    "server",
    "serving",
    "training",
)
_FUNCTIONS = {
    "load": "kseq.loading",
    "load_run": "kseq.loading",
    "run_recipe": "kseq.command_line.run_recipe",
}


def __getattr__(name):
    if name in _ROOMS:
        return lazy_module(f"kseq.{name}")
    if name in _FUNCTIONS:
        return import_name(_FUNCTIONS[name], name)
    raise AttributeError(f"module 'kseq' has no attribute {name!r}")


def __dir__():
    return [*globals(), *_FUNCTIONS, *_ROOMS]
