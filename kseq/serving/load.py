"""Loading of exports."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text  # noqa: F401, it has the operations of tokenizers
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

# SaveV2, RestoreV2 and ShardedFilename stand in every SavedModel.
_UNSAFE = re.compile(
    r"PyFunc|File(?!name)|Reader|Dataset|Print|Debug|Summary|Remap"
)


class TranslatorExport(NamedTuple):
    """What `kseq.serving.Translator` is, without the model."""

    path: Path
    translate: Callable
    n_best: Callable
    explain: Callable


class ClassifierExport(NamedTuple):
    """What `kseq.serving.Classifier` is, without the model."""

    path: Path
    classify: Callable
    explain: Callable


_SIGNATURES = {
    TranslatorExport: ("serving_default", "n_best", "explain"),
    ClassifierExport: ("serving_default", "explain"),
}


def load_export(path):
    """Loads a version that `export` wrote.

    The graph is read before it is loaded: one that could run Python or touch
    files is refused.

    Args:
        path: str or path, `saved_models/<name>/<version>`, or
            `saved_models/<name>` for its newest version.

    Returns:
        A `TranslatorExport` or a `ClassifierExport`.

    Raises:
        ValueError: if there is no such export.
    """
    path = _version(Path(path))
    kind = _checked_kind(path)
    loaded = tf.saved_model.load(str(path))

    def call(name):
        signature = loaded.signatures[name]
        return lambda text: signature(text=tf.constant(text, tf.string))

    return kind(path, *(call(name) for name in _SIGNATURES[kind]))


def _version(path):
    if (path / "saved_model.pb").is_file():
        return path
    versions = [
        int(found.parent.name)
        for found in path.glob("*/saved_model.pb")
        if found.parent.name.isdecimal()
    ]
    if not versions:
        raise ValueError(
            "path must be an export, or a directory of its versions. "
            f"Received: path={str(path)!r}"
        )
    return path / str(max(versions))


def _checked_kind(path):
    """What is exported, a class; ValueError unless it is safe to load."""
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((path / "saved_model.pb").read_bytes())
    except DecodeError as error:
        raise ValueError(
            f"saved_model.pb cannot be read. Received: path={str(path)!r}"
        ) from error

    signatures = {name for g in saved.meta_graphs for name in g.signature_def}
    kind = ClassifierExport if "classify" in signatures else TranslatorExport
    missing = set(_SIGNATURES[kind]) - signatures
    if missing:
        raise ValueError(
            "An export must have the signatures "
            f"{list(_SIGNATURES[kind])}. "
            f"Received: path={str(path)!r}, without {sorted(missing)}"
        )
    unsafe = {op for g in saved.meta_graphs for op in _ops(g.graph_def)}
    unsafe = sorted(filter(_UNSAFE.search, unsafe))
    if unsafe:
        raise ValueError(
            "An export must not run Python or touch files. "
            f"Received: path={str(path)!r}, with {unsafe}"
        )
    return kind


def _ops(graph):
    yield from (node.op for node in graph.node)
    for function in graph.library.function:
        yield from (node.op for node in function.node_def)
