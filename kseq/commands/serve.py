"""kseq serve: exports and runs behind TensorFlow Serving's APIs."""

import functools
import gc
import importlib.util
import logging
import re
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from kseq.files.model_path import (
    holds_version,
    is_run,
    is_version,
    version_folders,
    version_number,
    versions,
)
from kseq.process import OPTIONAL, start_keras
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_log = logging.getLogger(__name__)
# Text, which a name in bytes that are not UTF-8 is not.
_NAME = re.compile(r"(?!\.{1,2}$)[^/:\s\x00-\x1f\ud800-\udfff]+")


def run(options):
    """Serves until it is told to stop; requests in flight are answered."""
    _check_installed(options)
    models = _models(options)
    labels = dict(_label(text, models) for text in options.label)
    with _listening(options.host, options.port, "--port") as listening:
        if options.grpc_port is not None:  # bound later, by its own library
            _listening(options.host, options.grpc_port, "--grpc-port").close()
        start_keras(without=OPTIONAL, for_search=True)
        with tempfile.TemporaryDirectory(prefix="kseq-") as exports:
            folders = {
                name: _folder(path, Path(exports) / f"{number}")
                for number, (name, path) in enumerate(models.items())
            }
            _serve(folders, labels, listening, options, Path(exports))


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


def _models(options):
    """dict, name -> path of a folder of versions, or of a run."""
    models = {}
    named = [_named(text) for text in options.model]
    for name, path in [*_found(options.paths), *named]:
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
    name, _, path = text.partition("=")
    if not _NAME.fullmatch(name) or not path:
        raise UserError(f"Expected --model NAME=PATH. Received: {text!r}")
    if not _is_model(Path(path)):
        raise UserError(_refusal(Path(path)))
    return name, Path(path)


def _found(paths):
    for text in paths:
        path = Path(text).absolute()
        if _is_model(path):
            children = [path]
        else:
            children = sorted(filter(_is_model, _children(path)))
            for problem in filter(None, map(_problem, _children(path))):
                _log.warning(f"{problem} It is not served.")
        if not children:
            raise UserError(_refusal(Path(text)))
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
    """Why what has no version that can be read may be a model, or ""."""
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


def _label(text, models):
    """((name of the model, label), version)."""
    found = re.fullmatch(r"(?:([^/:=]+):)?([^/:=\s]+)=(\d+)", text)
    version = version_number(found[3]) if found else None
    if version is None:
        raise UserError(
            f"Expected --label [NAME:]LABEL=VERSION. Received: {text!r}"
        )
    name, label, _ = found.groups()
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


def _listening(host, port, option):
    """A socket that listens, before anything slow is done."""
    if not 0 <= port < 2**16:
        raise UserError(f"{option}: expected 0 to 65535. Received: {port}")
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


def _folder(path, export_to):
    """The folder of versions of a model; of a run, of an export of it."""
    if not is_run(path):
        return path
    from kseq.loading.load_run import load_run
    from kseq.serving.saved_model import export

    export(load_run(path), export_to)
    return export_to


def _serve(folders, labels, listening, options, exports):
    from kseq.server.model_store import ModelStore
    from kseq.server.serve import serve

    gc.collect()
    gc.freeze()  # libraries, which are not looked at again and again
    store = ModelStore(folders, labels, options.allow_op)
    store.poll()
    for name in folders:
        if store.newest(name) is None:
            raise UserError(f"{name} cannot be served: {store.problem(name)}")
    # Both end the server, which then returns; a second Ctrl-C ends at once.
    signal.signal(signal.SIGTERM, lambda *_: None)
    clean_up = functools.partial(shutil.rmtree, exports, ignore_errors=True)
    serve(store, listening, options, clean_up)
