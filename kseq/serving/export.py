"""Export to the layout that TensorFlow Serving polls."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import keras
import tensorflow as tf
import tensorflow_text

import kseq

_VERSIONS = ".versions"  # every number that was ever given, one a line
_LIBRARIES = (kseq, keras, tf, tensorflow_text)


def export(translator, directory):
    """Writes a translator as the next version under a directory.

    The version appears whole or not at all: it is written under a hidden
    name, flushed to the disk and renamed. No version number is given twice,
    also when a version was deleted, or two exports run at once.

    It is a SavedModel with the signatures `serving_default` (`translate`),
    `n_best` and `explain` of `kseq.serving.Translator`, and needs nothing but
    `tensorflow` and `tensorflow_text` to load.
    `assets.extra/kseq.json` describes it.

    Args:
        translator: a `kseq.serving.Translator`.
        directory: str or path, `saved_models/<name>`.

    Returns:
        `pathlib.Path` of the new version, `saved_models/<name>/<version>`.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    version = _next_version(directory)
    hidden = directory / f".{version}.partial"
    try:
        _save(translator, hidden)
        _describe(translator, hidden)
        _flush(hidden)
        os.rename(hidden, directory / version)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    _flush_one(directory)
    return directory / version


def _next_version(directory):
    """A number that no other export has had, or will have."""
    with open(directory / _VERSIONS, "a+") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # until it is closed
        log.seek(0)
        used = [path.name for path in directory.iterdir()] + log.read().split()
        version = 1 + max((int(n) for n in used if n.isdecimal()), default=0)
        log.write(f"{version}\n")
    return str(version)


def _save(translator, path):
    # The variables alone, and not the model: TensorFlow Serving does not find
    # variables that were saved as parts of Keras objects.
    module = tf.Module()
    module.weights = [v.value for v in translator.model.variables]
    tf.saved_model.save(
        module,
        str(path),
        signatures={
            "serving_default": translator.translate,
            "n_best": translator.n_best,
            "explain": translator.explain,
        },
    )


def _describe(translator, path):
    description = {
        "versions": {
            library.__name__: library.__version__ for library in _LIBRARIES
        },
        "beam_size": translator.beam_size,
        "length_penalty": translator.length_penalty,
        "max_length": translator.max_length,
        "source_vocab_size": translator.source_tokenizer.vocab_size,
        "target_vocab_size": translator.target_tokenizer.vocab_size,
        "parameters": translator.model.count_params(),
    }
    (path / "assets.extra").mkdir()
    text = json.dumps(description, indent=2) + "\n"
    (path / "assets.extra" / "kseq.json").write_text(text)


def _flush(path):
    for folder, _, names in os.walk(path):
        for name in names:
            _flush_one(Path(folder, name))
        _flush_one(folder)


def _flush_one(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
