"""Exports, opened where no model code is needed."""

import re

import tensorflow as tf
import tensorflow_text  # noqa: F401, it has the operations of tokenizers
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from kseq.model_path import is_version, model_path
from kseq.one_line import escaped_line
from kseq.plain_path import plain_path
from kseq.progress import progress
from kseq.serving.classifier_predictor import ClassifierPredictor
from kseq.serving.generator_predictor import SOURCES, GeneratorPredictor
from kseq.serving.stored_weight import free_with
from kseq.serving.tagger_predictor import TaggerPredictor
from kseq.serving.transducer_predictor import TransducerPredictor
from kseq.user_error import UserError

# SaveV2, RestoreV2 and ShardedFilename are in every SavedModel.
_UNSAFE = re.compile(
    r"PyFunc|File(?!name)|Reader|Dataset|Print|Debug|Summary|Remap"
)
_DEFAULT = "serving_default"
_TEXT = {"text", "score", "truncated"}
_TAGS = {"words", "tags", "probabilities", "truncated"}
_LABEL = {"label", "probability", "labels", "probabilities", "truncated"}


def load_export(path):
    """Opens a version that `export` wrote.

    The graph is read before it is loaded: a graph that could run Python or
    touch files is refused.

    Args:
        path: str or path, `saved_models/<name>/<version>`, or
            `saved_models/<name>` for its newest version.

    Returns:
        A `GeneratorPredictor`, `ClassifierPredictor`, `TaggerPredictor` or
        `TransducerPredictor`.

    Raises:
        UserError: if there is no such export.
    """
    path = model_path(path)
    if not is_version(path):
        raise UserError(f"{path} is not an export.")
    default = read_safe_graph(path).signature_def[_DEFAULT]
    inputs, outputs = list(default.inputs), set(default.outputs)
    if inputs == ["text"] and outputs >= _LABEL:
        return ClassifierPredictor(load_signatures(path))
    if inputs == ["text"] and outputs >= _TAGS:
        return TaggerPredictor(load_signatures(path))
    if len(inputs) == 1 and inputs[0] in SOURCES and outputs >= _TEXT:
        return GeneratorPredictor(load_signatures(path), source=inputs[0])
    if inputs == ["vectors"] and "probabilities" in outputs:
        return TransducerPredictor(load_signatures(path))
    raise UserError(
        f"An export must have a signature {_DEFAULT} from one of "
        f"{', '.join(SOURCES)} to `text`, from `text` to `label` or to `tags`, "
        f"or from `vectors` to `probabilities`, as `kseq.serving` writes it. "
        f"Received: {path}, which has "
        f"{sorted(default.inputs)} to {sorted(default.outputs)}"
    )


def load_signatures(path):
    """Loads a version: dict, name -> function of its tensors by keyword.

    Args:
        path: `pathlib.Path` of the version.

    Raises:
        UserError: if it is broken.
    """
    try:
        with (
            progress(f"Loading {escaped_line(path)}"),
            plain_path(path) as plain,
        ):
            model = tf.saved_model.load(str(plain))
    except (MemoryError, tf.errors.ResourceExhaustedError, UserError):
        raise
    except Exception as error:  # of many kinds, whatever is broken
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(
            f"{path} is broken: it cannot be loaded. {reason:.200}"
        ) from error
    signatures = dict(model.signatures)
    if stored := getattr(model, "stored_weights", ()):
        free_with(signatures.values(), stored)
    return signatures


def read_safe_graph(path):
    """The graph and the signatures of a version, which may be loaded.

    Args:
        path: `pathlib.Path` of the version.

    Raises:
        UserError: if its file is broken, or its graph could run Python or
            touch files.
    """
    meta_graph = read_meta_graph(path)
    unsafe = sorted(filter(_UNSAFE.search, op_names(meta_graph)))
    if unsafe:
        raise UserError(
            "An export must not run Python or touch files. "
            f"Received: {path}, with {unsafe}"
        )
    return meta_graph


def read_meta_graph(path):
    """The graph and the signatures of a version, not loaded.

    Args:
        path: `pathlib.Path` of the version.

    Raises:
        UserError: if its file is broken.
    """
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((path / "saved_model.pb").read_bytes())
        [meta_graph] = saved.meta_graphs
    except (DecodeError, ValueError, OSError):
        raise UserError(f"{path}/saved_model.pb cannot be read.") from None
    return meta_graph


def op_names(meta_graph):
    """The names of all operations of a graph, a set."""
    graph = meta_graph.graph_def
    nodes = [graph.node, *(f.node_def for f in graph.library.function)]
    return {node.op for part in nodes for node in part}
