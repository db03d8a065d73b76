"""The environment of a run: versions, machine, seed."""

import importlib.metadata
import os
import platform

import kseq

_PACKAGES = (
    "tensorflow",
    "tensorflow-text",
    "keras",
    "numpy",
    "sentencepiece",
    "sacrebleu",
)


def environment(seed):
    """Versions, machine and seed, a dict that `environment.json` holds."""
    versions = {
        package: importlib.metadata.version(package) for package in _PACKAGES
    }
    return {
        "kseq": kseq.__version__,
        "python": platform.python_version(),
        **versions,
        "machine": platform.platform(),
        "processor": platform.machine(),
        "processors": os.cpu_count(),
        "seed": seed,
    }
