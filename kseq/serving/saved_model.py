"""Export to the layout that TensorFlow Serving polls."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import keras
import tensorflow as tf
import tensorflow_text
from tensorflow.compat.v1.saved_model import signature_def_utils
from tensorflow.saved_model import CLASSIFY_METHOD_NAME

import kseq
from kseq.progress import progress
from kseq.whole_files import flush

_VERSIONS = ".versions"  # every number that was ever given, one a line
_LIBRARIES = (kseq, keras, tf, tensorflow_text)


def export(served, directory):
    """Writes a generator or classifier as the next version in a directory.

    The version appears whole or not at all: it is written under a hidden
    name, flushed to the disk and renamed. No version number is given twice,
    also when a version was deleted, or two exports run at once.

    It is a SavedModel that needs nothing but `tensorflow` and
    `tensorflow_text` to load, with the signatures of what is served.
    `assets.extra/kseq.json` describes it, and `assets.extra/README.md` the run
    that it was loaded from.

    Args:
        served: `kseq.serving.Generator` or `kseq.serving.Classifier`.
        directory: str or path, `saved_models/<name>`.

    Returns:
        `pathlib.Path` of the new version, `saved_models/<name>/<version>`.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    version = _next_version(directory)
    hidden = directory / f".{version}.partial"
    try:
        with progress(f"Exporting to {directory}"):
            _save(served, hidden)
        _describe(served, hidden)
        _flush_all(hidden)
        os.rename(hidden, directory / version)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    flush(directory)
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


def _save(served, path):
    # The variables alone, and not the model: TensorFlow Serving does not find
    # variables that were saved as parts of Keras objects.
    module = tf.Module()
    module.weights = [v.value for v in served.model.variables]
    tf.saved_model.save(module, str(path), signatures=served.signatures)
    if "classify" in served.signatures:
        names = signature_def_utils.MethodNameUpdater(str(path))
        names.replace_method_name("classify", CLASSIFY_METHOD_NAME)
        names.save()


def _describe(served, path):
    description = {
        "versions": {
            library.__name__: library.__version__ for library in _LIBRARIES
        },
        **served.get_config(),
        "vocab_sizes": {
            name: tokenizer.vocab_size
            for name, tokenizer in served.tokenizers.items()
        },
        "parameters": served.model.count_params(),
    }
    (path / "assets.extra").mkdir()
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    (path / "assets.extra" / "kseq.json").write_text(text, "utf-8")
    if served.model_card:
        readme = path / "assets.extra" / "README.md"
        readme.write_text(served.model_card, "utf-8")


def _flush_all(path):
    for folder, _, names in os.walk(path):
        for name in names:
            flush(Path(folder, name))
        flush(folder)
