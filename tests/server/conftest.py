"""SavedModels of plain functions, which are made in a second."""

import functools
import os
import shutil
import threading
import warnings

import pytest
import tensorflow as tf
from anyio.from_thread import start_blocking_portal
from tensorflow.compat.v1.saved_model import signature_def_utils
from tensorflow.saved_model import CLASSIFY_METHOD_NAME

with warnings.catch_warnings():
    # Starlette asks for httpx2, the successor of httpx; either will do.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from kseq.server import Batcher, ModelStore, RestApp
from kseq.serving.safe_graph import trust
from tests.server.grpc_client import serve_grpc
from tests.server.streaming_models import save_streaming_models


def _function(**inputs):
    """Decorator of a signature: name=(dtype, *shape)."""
    specs = [
        tf.TensorSpec(shape, dtype, name=name)
        for name, (dtype, *shape) in inputs.items()
    ]
    return tf.function(input_signature=specs)


def _classify(inputs):
    feature = tf.io.FixedLenFeature([], tf.string, default_value="")
    text = tf.io.parse_example(inputs, {"text": feature})["text"]
    length = tf.cast(tf.strings.length(text), tf.float32)
    return {
        "classes": tf.stack([tf.strings.upper(text), text], axis=1),
        "scores": tf.stack([length, -length], axis=1),
    }


def _signatures():
    @_function(text=(tf.string, None))
    def text(text):
        return {
            "text": tf.strings.upper(text, encoding="utf-8"),
            "score": tf.cast(tf.strings.length(text), tf.float32),
        }

    @_function(a=(tf.float32, None, 2), b=(tf.int64, None))
    def several(a, b):
        return {"sum": tf.reduce_sum(a, axis=1) + tf.cast(b, tf.float32)}

    @_function(x=(tf.float32, None))
    def double(x):
        return {"y": 2 * x}

    @_function(x=(tf.float32, None))
    def log(x):
        return {"y": tf.math.log(x)}

    @_function(x=(tf.int32, None))
    def kinds(x):
        half = tf.cast(x, tf.float32) / 2
        return {"positive": x > 0, "same": x, "half": half}

    @_function(
        wide=(tf.float64, None), half=(tf.float16, None), byte=(tf.uint8, None)
    )
    def rare_kinds(wide, half, byte):
        return {"wide": 2 * wide, "half": 2 * half, "byte": byte + 1}

    @_function(x=(tf.bool, None))
    def negate(x):
        return {"y": tf.logical_not(x)}

    @_function(x=(tf.float32,))
    def double_scalar(x):
        return {"y": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, "x")])
    def double_any(x):
        return {"y": 2 * x}

    @_function(x=(tf.int32, None))
    def count_slowly(x):
        (y,) = tf.while_loop(
            lambda y: tf.reduce_any(y < x), lambda y: [y + 1], [0 * x]
        )
        return {"y": y}

    @_function(text=(tf.string, None))
    def to_bytes(text):
        return {"raw_bytes": tf.strings.join([b"\xff", text])}

    @_function(text=(tf.string, None))
    def to_invalid_utf8(text):
        return {"text": tf.strings.join([b"\xff", text])}

    @_function(text=(tf.string, None))
    def to_number(text):
        return {"number": tf.strings.to_number(text)}

    @_function(text=(tf.string, None))
    def with_count(text):
        return {"text": text, "count": tf.size(text)}

    @_function(text=(tf.string, None))
    def with_three(text):
        return {"text": text, "three": tf.range(3)}

    @_function(text=(tf.string, None))
    def join(text):
        return {"text": tf.strings.reduce_join(text)}

    @_function(inputs=(tf.string, None))
    def classify(inputs):
        return _classify(inputs)

    @_function(inputs=(tf.string, None))
    def classify_scores(inputs):
        return {"scores": _classify(inputs)["scores"]}

    @_function(inputs=(tf.string, None))
    def classify_names(inputs):
        return {"classes": _classify(inputs)["classes"]}

    functions = {
        name: value for name, value in locals().items() if callable(value)
    }
    return {**functions, "serving_default": text}


def _save(path, signatures):
    module = tf.Module()
    module.functions = signatures
    tf.saved_model.save(module, str(path), signatures=signatures)


def _set_classify(path, *names):
    updater = signature_def_utils.MethodNameUpdater(str(path))
    for name in names:
        updater.replace_method_name(name, CLASSIFY_METHOD_NAME)
    updater.save()
    _trust(path)


def _trust(path):
    """Their operations are not only those that kseq exports."""
    trust((path / "saved_model.pb").read_bytes())


def _save_number(path, number):
    """A SavedModel whose two outputs are both its number."""
    module = tf.Module()
    module.number = tf.Variable(number, dtype=tf.int64)

    @_function(text=(tf.string, None))
    def numbers(text):
        same = tf.fill(tf.shape(text), module.number)
        return {"version": same, "again": tf.identity(same)}

    module.numbers = numbers
    signatures = {"serving_default": numbers}
    tf.saved_model.save(module, str(path), signatures=signatures)
    _trust(path)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A base path for each model: `many` with two versions, and `my films`.

    Version 1 of `many` gives its number; version 2 has all the signatures.
    """
    root = tmp_path_factory.mktemp("models")
    _save_number(root / "many" / "1", 1)
    _save(root / "many" / "2", _signatures())
    _set_classify(root / "many" / "2", "classify")

    films = _function(inputs=(tf.string, None))(_classify)
    _save(root / "films" / "7", {"serving_default": films})
    _set_classify(root / "films" / "7", "serving_default")
    return {"many": root / "many", "my films": root / "films"}


@pytest.fixture(scope="session")
def numbered(tmp_path_factory):
    """Function that gives the SavedModel of a version number."""
    root = tmp_path_factory.mktemp("numbered")

    def path_of(number):
        path = root / str(number)
        if not path.exists():
            _save_number(path, number)
        return path

    return path_of


@pytest.fixture
def install():
    """Function that copies a SavedModel to a path, which appears whole."""

    def copy(source, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.partial")
        shutil.copytree(source, hidden)
        os.rename(hidden, path)

    return copy


def _read_file(text):
    return {"text": tf.map_fn(tf.io.read_file, text)}


def _write_file(text):
    tf.io.write_file(text[0], text[0])
    return {"text": text}


def _python(text):
    return {
        "text": tf.ensure_shape(
            tf.py_function(_same, [text], tf.string), [None]
        )
    }


def _same(text):
    return text


@pytest.fixture(
    scope="session",
    params=[_read_file, _write_file, _python],
    ids=["read_file", "write_file", "py_function"],
)
def unsafe(request, tmp_path_factory):
    """A SavedModel that reads a file, writes one or calls Python."""
    path = tmp_path_factory.mktemp("unsafe") / "model"
    function = _function(text=(tf.string, None))(request.param)
    _save(path, {"serving_default": function})
    return path


@pytest.fixture(scope="session")
def uncallable(tmp_path_factory):
    """A SavedModel whose input is of a type that no request can have."""
    path = tmp_path_factory.mktemp("uncallable") / "model"

    @_function(x=(tf.variant,))
    def ignore(x):
        return {"y": tf.constant([1.0])}

    _save(path, {"serving_default": ignore})
    _trust(path)
    return path


@pytest.fixture
def open_store():
    """Function that makes a store, polled once; all are closed at the end."""
    stores = []

    def make(models, labels=None):
        store = ModelStore(models, labels=labels or {})
        stores.append(store)
        store.poll()
        return store

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def open_client():
    """Function that makes an HTTP client of a store."""
    batchers = []
    with start_blocking_portal() as portal:

        def make(store, queue_size=256, **options):
            batchers.append(Batcher(queue_size))
            app = RestApp(store, batchers[-1], hosts=("localhost",), **options)
            client = TestClient(app, base_url="http://localhost")
            client.portal = portal  # one event loop for all requests
            return client

        yield make
        for batcher in batchers:
            batcher.close()


@pytest.fixture(scope="session")
def store(models):
    """Serves `models`, and version 1 of `many` by the label `stable`."""
    store = ModelStore(models, labels={("many", "stable"): 1})
    store.poll()
    yield store
    store.close()


@pytest.fixture
def client(store, open_client):
    """Asks over HTTP; a module with a `store` of its own asks that."""
    return open_client(store)


@pytest.fixture(scope="session")
def streaming_store(tmp_path_factory):
    """Serves models whose answers come letter by letter."""
    folders = save_streaming_models(tmp_path_factory.mktemp("streaming"))
    store = ModelStore(folders, labels={})
    store.poll()
    assert store.is_ready
    yield store
    store.close()


@pytest.fixture
def held(store, monkeypatch):
    """Event until which no model answers; `begun` counts the calls."""
    servable, release = store.find("many"), threading.Event()
    run, release.begun = servable.run, []

    def hold(signature, inputs):
        release.begun.append(inputs)
        assert release.wait(20)
        return run(signature, inputs)

    monkeypatch.setattr(servable, "run", hold)
    yield release
    release.set()


@pytest.fixture(scope="session")
def open_grpc():
    """`serve_grpc` in an event loop of the tests."""
    with start_blocking_portal() as portal:
        yield functools.partial(serve_grpc, portal)


@pytest.fixture(scope="module")
def grpc_client(store, open_grpc):
    """Of a server that takes messages of 1 MiB."""
    with open_grpc(store, body_limit=2**20) as client:
        yield client
