"""Exports, opened where no model code is needed."""

import math
import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorflow as tf
import tensorflow_text  # noqa: F401, it has the operations of tokenizers
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from kseq.answers import types_of_export
from kseq.files.model_path import is_version, model_path
from kseq.runs.checkpoint_index import check_index
from kseq.runs.finite_weights import check_finite
from kseq.serving.safe_graph import check_graph, is_own
from kseq.serving.stored_weight import free_with
from kseq.sources import NAMES
from kseq.terminal import escaped_line, progress
from kseq.user_error import UserError, reason_of

if TYPE_CHECKING:  # only one of them is needed
    from kseq.serving import (
        ClassifierPredictor,
        GeneratorPredictor,
        TaggerPredictor,
        TransducerPredictor,
    )

    Predictor: TypeAlias = (
        GeneratorPredictor
        | ClassifierPredictor
        | TaggerPredictor
        | TransducerPredictor
    )

_GRAPH = "saved_model.pb"
_LARGEST = 2**31  # bytes of a graph, as TensorFlow's


def load_export(
    path: str | os.PathLike, *, allow_ops: Collection[str] = ()
) -> "Predictor":
    """Opens a version that `export` wrote.

    The graph is read before it is loaded. It is refused if it has an operation
    that no export of kseq has, or an object that could run other code. Exports
    that this process has written itself may have any operation.

    Args:
        path: str or path, `saved_models/<name>/<version>`, or
            `saved_models/<name>` for its newest version.
        allow_ops: names of operations that it may have as well, because you
            trust it. An operation can read and write files and run programs.

    Returns:
        A `GeneratorPredictor`, `ClassifierPredictor`, `TaggerPredictor` or
        `TransducerPredictor`.

    Raises:
        UserError: if there is no such export, or it may not be loaded.
    """
    path = model_path(path)
    if not is_version(path):
        raise UserError(f"{path} is not an export.")
    meta_graph = read_safe_graph(path, allow_ops)
    if types := types_of_export(meta_graph.signature_def):
        source, answer = types
        return answer.predictor(load_signatures(path, meta_graph), source.name)
    default = meta_graph.signature_def["serving_default"]
    raise UserError(
        "An export must have a signature serving_default from one of "
        f"{', '.join(NAMES)} to a text, a label, tags or probabilities, as "
        f"`kseq.serving` writes it. Received: {path}, which has "
        f"{sorted(default.inputs)} to {sorted(default.outputs)}"
    )


def load_signatures(
    path: Path, meta_graph: MetaGraphDef
) -> dict[str, Callable[..., Any]]:
    """Loads a version: dict, name -> function of its tensors by keyword.

    TensorFlow is given the graph that was checked, and not the file: that may
    have been replaced since. It is also given a path without characters that
    it would take for a pattern.

    Args:
        path: `pathlib.Path` of the version.
        meta_graph: what `read_safe_graph` returned.

    Raises:
        UserError: if it is broken.
    """
    saved = saved_model_pb2.SavedModel(
        saved_model_schema_version=1, meta_graphs=[meta_graph]
    )
    with tempfile.TemporaryDirectory(prefix="kseq-") as folder:
        checked = Path(folder)
        try:
            (checked / _GRAPH).write_bytes(saved.SerializeToString())
            (checked / "variables").symlink_to((path / "variables").absolute())
            _check_weights(checked / "variables", meta_graph)
            with progress(f"Loading {escaped_line(path)}"):
                model = tf.saved_model.load(folder)
            signatures = dict(model.signatures)
            _check_signatures(signatures, meta_graph)
        except (MemoryError, tf.errors.ResourceExhaustedError):
            raise
        except Exception as error:  # of many kinds, whatever is broken
            reason = f"{type(error).__name__}: {reason_of(error)}"
            reason = reason.replace(folder, str(path))
            raise UserError(
                f"{path} is broken: it cannot be loaded. {reason:.200}"
            ) from error
    check_finite(path, _weights_of(model))
    if stored := getattr(model, "stored_weights", ()):
        free_with(signatures.values(), stored)
    return signatures


def _weights_of(model):
    """The variables that `export` has stored, whatever else a model has."""
    lists = [getattr(model, name, ()) for name in ("weights", "parts")]
    found = tf.nest.flatten(lists)
    return [each for each in found if isinstance(each, tf.Variable)]


def _check_weights(folder, meta_graph):
    """ValueError if the weights would take more memory than their files."""
    check_index(folder / "variables")
    files = folder.glob("variables.data-*")
    available = sum(file.stat().st_size for file in files)
    variables = [
        node.variable
        for node in meta_graph.object_graph_def.nodes
        if node.HasField("variable")
    ]
    declared = sum(
        math.prod(dim.size for dim in variable.shape.dim)
        * (tf.dtypes.as_dtype(variable.dtype).size or 1)
        for variable in variables
    )
    if declared > available:
        raise ValueError(
            f"its weights would take {declared} bytes, but their files have "
            f"{available}"
        )


def _check_signatures(signatures, meta_graph):
    """ValueError unless the functions are what the graph says of them."""
    for name, definition in meta_graph.signature_def.items():
        if name.startswith("__"):
            continue
        found = signatures[name]
        num_inputs = len(definition.inputs) + len(found.captured_inputs)
        if num_inputs != len(found.function_def.signature.input_arg):
            raise ValueError(f"its signature {name} takes other inputs")
        for specs, declared in (
            (found.structured_input_signature[1], definition.inputs),
            (found.structured_outputs, definition.outputs),
        ):
            dtypes = {k: spec.dtype for k, spec in specs.items()}
            expected = {k: info.dtype for k, info in declared.items()}
            if dtypes != expected:
                raise ValueError(f"its signature {name} is another function")


def read_safe_graph(
    path: Path, allow_ops: Collection[str] = ()
) -> MetaGraphDef:
    """The graph and the signatures of a version that is safe to load.

    Args:
        path: `pathlib.Path` of the version.
        allow_ops: see `load_export`.

    Raises:
        UserError: if its file is broken, or it is not allowed.
    """
    serialized, meta_graph = _read_graph(path)
    if not is_own(serialized):
        check_graph(path, meta_graph, allow_ops)
    return meta_graph


def read_meta_graph(path: Path) -> MetaGraphDef:
    """The graph and the signatures of a version, not loaded.

    Args:
        path: `pathlib.Path` of the version.

    Raises:
        UserError: if its file is broken.
    """
    _, meta_graph = _read_graph(path)
    return meta_graph


def _read_graph(path):
    """The bytes of the graph of a version, and the same parsed."""
    try:
        with open(path / _GRAPH, "rb") as file:
            serialized = file.read(_LARGEST)
        if len(serialized) == _LARGEST:
            raise ValueError("it is larger than any graph of TensorFlow")
        saved = saved_model_pb2.SavedModel.FromString(serialized)
        [meta_graph] = saved.meta_graphs
    except (OSError, DecodeError, ValueError):
        raise UserError(f"{path / _GRAPH} cannot be read.") from None
    return serialized, meta_graph
