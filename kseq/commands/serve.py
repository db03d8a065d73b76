"""kseq serve: exports and runs behind TensorFlow Serving's APIs."""

import contextlib
import functools
import gc
import importlib.util
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from kseq.commands.serve_workers import run_workers
from kseq.files.model_path import (
    holds_version,
    is_run,
    is_version,
    local_path,
    version_folders,
    version_number,
    versions,
)
from kseq.process import OPTIONAL, quiet_stderr, start_keras, stop_in_order
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_log = logging.getLogger(__name__)
# Text, which a name in bytes that are not UTF-8 is not.
_NAME = re.compile(r"(?!\.{1,2}$)[^/:\s\x00-\x1f\ud800-\udfff]+")


def run(options):
    """Serves until it is told to stop; requests in flight are answered."""
    _check_installed(options)
    _check_workers(options.workers)
    named = [_named(text) for text in options.model]
    labels = [_label(text) for text in options.label]
    models = _models(options.paths, named)
    labels = _versions(labels, models)
    with _listening(options.host, options.port) as listening:
        if options.grpc_port is not None:  # bound later, by its own library
            _listening(options.host, options.grpc_port).close()
        with tempfile.TemporaryDirectory(prefix="kseq-") as folder:
            serve = _serve if options.workers == 1 else _serve_in_workers
            with stop_in_order():  # the folder is deleted
                serve(models, labels, listening, options, Path(folder))


def _check_installed(options):
    needed = [("starlette", "serve"), ("uvicorn", "serve")]
    if options.metrics:
        needed.append(("prometheus_client", "serve"))
    if options.grpc_port is not None:
        needed.append(("tensorflow_serving", "grpc"))
    for library, extra in needed:
        if importlib.util.find_spec(library) is None:
            raise UserError(
                f"kseq serve needs {library}: pip install '.[{extra}]' in a "
                "clone of kseq"
            )


def _check_workers(workers):
    most = max(os.cpu_count() or 1, 2)  # one may die, and the other answers
    if workers > most:
        raise UserError(
            f"--workers {workers}: expected at most {most} on a machine with "
            f"{os.cpu_count()} processors: each worker loads the models."
        )


def _models(paths, named):
    """dict, name -> path of a folder of versions, or of a run."""
    models = {}
    for name, path in [*_found(paths), *map(_model, named)]:
        if name in models:
            raise UserError(
                f"Two models have the name {name}: {models[name]} and {path}. "
                "Give one a different name with --model NAME=PATH."
            )
        models[name] = path
    if not models:
        raise UserError("Expected the PATH of a model, or --model NAME=PATH.")
    return models


def _named(text):
    """(name, path)."""
    name, _, path = text.partition("=")
    if not _NAME.fullmatch(name) or not path:
        raise UserError(f"Expected --model NAME=PATH. Received: {text!r}")
    return name, path


def _model(named):
    name, path = named
    path = local_path(path)
    if not _is_model(path):
        raise UserError(_refusal(path))
    return name, path


def _found(paths):
    for text in paths:
        given = local_path(text)
        path = given.absolute()
        if _is_model(path):
            children = [path]
        else:
            children = sorted(filter(_is_model, _children(path)))
            for problem in filter(None, map(_problem, _children(path))):
                _log.warning(f"{problem} It is not served.")
        if not children:
            raise UserError(_refusal(given))
        for child in children:
            if not _NAME.fullmatch(child.name):
                raise UserError(
                    f"{child.name!r} is not a valid model name: choose one "
                    "with --model NAME=PATH."
                )
            yield child.name, child


def _is_model(path):
    try:
        return is_run(path) or bool(versions(path))
    except OSError:  # of a run
        return False


def _children(path):
    try:
        return list(path.iterdir())
    except (OSError, ValueError):  # no folder, no permission, NUL
        return []


def _refusal(path):
    if is_version(path):
        return (
            f"{path} is one version; give the folder of versions that it is "
            f"in, {path.absolute().parent}."
        )
    problem = _problem(path)
    return (
        f"{path} is neither a folder of versions, nor a folder of such "
        f"folders, nor a run.{problem and ' '}{problem}"
    )


def _problem(path):
    """Why a path without a readable version may still be a model, or ""."""
    if _is_model(path):
        return ""
    try:
        is_run(path)
        for folder in version_folders(path).values():
            holds_version(folder)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as error:
        where = escaped_line(error.filename or path)
        return f"{where} cannot be read: {error.strerror}."
    return ""


def _label(text):
    """(name of the model or None, label, version)."""
    found = re.fullmatch(r"(?:([^/:=]+):)?([^/:=\s]+)=(\d+)", text)
    version = version_number(found[3]) if found else None
    if version is None:
        raise UserError(
            f"Expected --label [NAME:]LABEL=VERSION. Received: {text!r}"
        )
    return found[1], found[2], version


def _versions(labels, models):
    """dict, (name of the model, label) -> version."""
    found = {}
    for label in labels:
        key, version = _version(*label, models)
        if found.setdefault(key, version) != version:
            raise UserError(
                f"Versions {found[key]} and {version} of {key[0]} have the "
                f"label {key[1]}. Give one a different label."
            )
    return found


def _version(name, label, version, models):
    """((name of the model, label), version)."""
    text = f"{label}={version}"
    if name is None and len(models) > 1:
        raise UserError(
            f"--label {text}: there are several models; give the name of one, "
            f"as {next(iter(models))}:{text}"
        )
    name = name or next(iter(models))
    if name not in models:
        raise UserError(f"--label {text}: there is no model {name}.")
    if version not in versions(models[name]):
        raise UserError(
            f"--label {text}: {models[name]} has no version {version}."
        )
    return (name, label), version


def _listening(host, port):
    """A socket that listens, before anything slow is done."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.create_server((host, port), family=family, backlog=512)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"Cannot listen at {host}:{port}: {reason}") from None
    # Connections inherit it. Without it the second packet of an answer waits
    # 40 ms for the acknowledgement of the first.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def _serve(models, labels, listening, options, folder):
    """Serves in this process."""
    start_keras(without=OPTIONAL, for_search=True)
    exports = _exports(models, folder)
    for name, export_to in exports.items():
        _export(models[name], export_to)
    clean_up = functools.partial(shutil.rmtree, folder, ignore_errors=True)
    _serve_folders(
        models | exports, labels, listening, options, clean_up=clean_up
    )


def _export(run, export_to):
    from kseq.loading.load_run import load_run
    from kseq.serving.saved_model import export

    export(load_run(run), export_to)


def _serve_in_workers(models, labels, listening, options, folder):
    """Serves in several processes; this one loads no TensorFlow."""
    exports = _exports(models, folder)
    command = [sys.executable, "-m", "kseq", "export"]
    for name, export_to in exports.items():
        words = [str(models[name]), "--to", str(export_to)]
        done = subprocess.run([*command, *words], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise SystemExit(done.returncode)
    with contextlib.ExitStack() as reserved:
        sockets = [listening]
        if options.grpc_port is not None:
            sockets.append(reserved.enter_context(_reserved(options)))
            options.grpc_port = sockets[-1].getsockname()[1]
        work = functools.partial(
            _serve_as_worker, models | exports, labels, listening, options
        )
        run_workers(options.workers, work, folder, sockets)


def _serve_as_worker(folders, labels, listening, options, worker):
    # On a terminal one of them says that TensorFlow is being started.
    with contextlib.nullcontext() if worker.is_first else quiet_stderr():
        start_keras(without=OPTIONAL, for_search=True)
    _serve_folders(folders, labels, listening, options, worker=worker)


def _reserved(options):
    """A socket bound to the port at which gRPC listens in each worker."""
    with _listening(options.host, options.grpc_port) as free:
        family, address = free.family, free.getsockname()
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind(address)
    return found


def _exports(models, folder):
    """dict, name of a run -> the folder for exports of it."""
    return {
        name: folder / f"{number}"
        for number, (name, path) in enumerate(models.items())
        if is_run(path)
    }


def _serve_folders(folders, labels, listening, options, **more):
    from kseq.server.model_store import ModelStore
    from kseq.server.serve import serve

    gc.collect()
    gc.freeze()  # libraries, which are not looked at again and again
    store = ModelStore(folders, labels, options.allow_op)
    store.poll()
    for name in folders:
        if store.newest(name) is None:
            raise UserError(f"{name} cannot be served: {store.problem(name)}")
    serve(store, listening, options, **more)
