"""Export to the layout that TensorFlow Serving polls."""

import contextlib
import fcntl
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import keras
import tensorflow as tf
import tensorflow_text
from tensorflow.compat.v1.saved_model import signature_def_utils
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.saved_model import CLASSIFY_METHOD_NAME

import kseq
from kseq.files.atomic_write import flush
from kseq.files.json_files import to_json
from kseq.files.literal_path import literal_path
from kseq.files.model_path import LAST_VERSION, version_number
from kseq.runs import RunDirectory
from kseq.runs.exports import check_exports, claim_exports
from kseq.runs.finite_weights import check_finite
from kseq.serving.safe_graph import other_ops, trust
from kseq.serving.stored_weight import DTYPES, StoredWeight, can_store
from kseq.terminal import escaped_line, progress
from kseq.user_error import (
    DiskError,
    UserError,
    check_choice,
    reason_of,
    write_error,
)

if TYPE_CHECKING:  # only one of them is needed
    from kseq.serving.classifier import Classifier
    from kseq.serving.generator import Generator
    from kseq.serving.retriever import Retriever
    from kseq.serving.tagger import Tagger
    from kseq.serving.transducer import Transducer

    Served: TypeAlias = Classifier | Generator | Retriever | Tagger | Transducer

_VERSIONS = ".versions"  # every number that was ever given, one per line
_QUANTIZED = """
## Weights

The matrices of this export are stored in {dtype}. The scores above are those of
the weights in float32.
"""
_LIBRARIES = (kseq, keras, tf, tensorflow_text)
_log = logging.getLogger(__name__)


def export(
    served: "Served",
    directory: str | os.PathLike,
    run: RunDirectory | None = None,
    quantize: str | None = None,
) -> Path:
    """Writes what is served as the next version in a directory.

    The version appears atomically: it is written under a hidden name, flushed
    to the disk and renamed. No version number is used twice, even if a version
    was deleted or two exports run at once. Leftovers of killed exports are
    deleted.

    It is a SavedModel that needs nothing but `tensorflow` and
    `tensorflow_text` to load, with the signatures of what is served.
    `assets.extra/kseq.json` describes it, and `assets.extra/README.md` the run
    that it was loaded from.

    Args:
        served: `kseq.serving.Generator`, `Classifier`, `Retriever`, `Tagger` or
            `Transducer`.
        directory: str or path, `saved_models/<name>`.
        run: `kseq.runs.RunDirectory` of what is served: the directory is then
            refused if it has exports of another run. None: not checked.
        quantize: "int8" or "bfloat16", in which the matrices of the model are
            stored, a quarter or half of their size; None for float32. They
            become float32 when they are loaded.

    Returns:
        `pathlib.Path` of the new version, `saved_models/<name>/<version>`.

    Raises:
        UserError: if the directory is that of another run, or cannot be
            written; or a weight is NaN or infinite.
        DiskError: if the disk is full.
        ValueError: if `quantize` is anything else.
    """
    check_choice("quantize", quantize, (None, *DTYPES))
    directory = Path(directory)
    try:
        return _export(served, directory, run, quantize)
    except tf.errors.OpError as error:
        raise _disk_error(directory, reason_of(error)) from error
    except OSError as error:
        if error.errno in DiskError.errnos:
            raise _disk_error(directory, error.strerror) from error
        raise write_error(directory, error) from error


def _disk_error(directory, reason):
    return DiskError(
        f"{directory} could not be written; the versions in it are intact. "
        f"{reason}"
    )


def _export(served, directory, run, quantize):
    check_finite("The model", [v.value for v in served.model.variables])
    if run is not None:
        check_exports(directory, run.path)
    directory.mkdir(parents=True, exist_ok=True)
    version, writing = _next_version(directory, run)
    hidden = directory / f".{version}.partial"
    try:
        with progress(f"Exporting to {directory}"):
            _save(served, hidden, quantize)
        _describe(served, hidden, quantize)
        _flush_all(hidden)
        _trust(hidden / "saved_model.pb", directory / version)
        os.rename(hidden, directory / version)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        (directory / f".{version}.writing").unlink(missing_ok=True)
        writing.close()
    flush(directory)
    return directory / version


def _next_version(directory, run):
    """Reserves a version number that no other export gets.

    Returns:
        It, a str, and the open file `.<version>.writing`, which is locked as
        long as its process lives and writes the version.
    """
    with open(directory / _VERSIONS, "a+", errors="replace") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # until it is closed
        if run is not None:
            check_exports(directory, run.path)
            claim_exports(directory, run.path)
        _delete_left_overs(directory)
        log.seek(0)
        used = [path.name for path in directory.iterdir()] + log.read().split()
        version = 1 + max(
            (n for n in map(version_number, used) if n is not None), default=0
        )
        if version > LAST_VERSION:
            raise UserError(
                f"{directory} has version {LAST_VERSION}, which no version "
                "can follow. Export to a different folder with --to."
            )
        log.write(f"{version}\n")
        log.flush()
        # Open until the version is written.
        writing = open(directory / f".{version}.writing", "w")  # noqa: SIM115
        fcntl.flock(writing, fcntl.LOCK_EX)
    return str(version), writing


def _delete_left_overs(directory):
    """Deletes what killed exports have written."""
    for hidden in directory.glob(".*.partial"):
        lock = hidden.with_suffix(".writing")
        with contextlib.suppress(BlockingIOError), open(lock, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(hidden, ignore_errors=True)
    for lock in directory.glob(".*.writing"):
        with contextlib.suppress(BlockingIOError), open(lock, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.unlink(missing_ok=True)  # its process may have done so


def _save(served, path, quantize):
    # The variables alone, and not the model: TensorFlow Serving does not find
    # variables that were saved as parts of Keras objects.
    module = tf.Module()
    variables = [*served.model.variables]
    if quantize:
        module.stored_weights = [
            StoredWeight(variable, quantize, f"stored_{i}")
            for i, variable in enumerate(filter(can_store, variables))
        ]
        module.parts = [weight.parts for weight in module.stored_weights]
        variables = [v for v in variables if not can_store(v)]
    for part in (served.preprocessor, served):
        variables += getattr(part, "variables", [])
    module.weights = [v.value for v in variables]
    signatures = served.signatures | getattr(served, "stream_signatures", {})
    with literal_path(path.parent) as plain:
        name = str(plain / path.name)
        tf.saved_model.save(module, name, signatures=signatures)
        if "classify" in served.signatures:
            names = signature_def_utils.MethodNameUpdater(name)
            names.replace_method_name("classify", CLASSIFY_METHOD_NAME)
            names.save()


def _describe(served, path, quantize):
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
        **({"quantized": quantize} if quantize else {}),
    }
    folder = path / "assets.extra"
    folder.mkdir()
    (folder / "kseq.json").write_text(to_json(description), "utf-8")
    if served.model_card:
        weights = _QUANTIZED.format(dtype=quantize) if quantize else ""
        readme = served.model_card + weights
        (folder / "README.md").write_text(readme, "utf-8")


def _trust(graph, path):
    """Lets this process open the export, and says what others need."""
    serialized = graph.read_bytes()
    trust(serialized)
    for meta_graph in saved_model_pb2.SavedModel.FromString(
        serialized
    ).meta_graphs:
        if found := other_ops(meta_graph):
            _log.warning(
                escaped_line(
                    f"{path} has operations that no export of kseq has, of a "
                    "constraint or a layer of your own. To open it: "
                    f"{' '.join(f'--allow-op {op}' for op in found)}"
                )
            )


def _flush_all(path):
    for folder, _, names in os.walk(path):
        for name in names:
            flush(Path(folder, name))
        flush(folder)
