"""What all tests share: Keras, quietly imported, and fixtures."""

import gc
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import functools
import secrets
import shutil
import signal
import sys
import typing
import zlib
from pathlib import Path

import pytest

from kseq import cli
from kseq.process import OPTIONAL, quiet_stderr
from tests.unpack import unpack

# Until all tests are collected, a million objects are made, and all stay.
gc.disable()

with quiet_stderr():
    hidden = set()
    if os.environ["KERAS_BACKEND"] == "tensorflow":
        # As in a command: Keras would import them, which takes seconds.
        hidden = set(OPTIONAL) - sys.modules.keys()
    sys.modules |= dict.fromkeys(hidden)
    import keras

    for name in hidden:
        del sys.modules[name]

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf
        from tensorflow.python.eager import context
        from tensorflow.python.framework import random_seed
        from tensorflow.python.util import traceback_utils

        # A worker of pytest has one core: more threads would only wait.
        tf.config.threading.set_intra_op_parallelism_threads(1)
        # Two devices on any machine, for tests with MirroredStrategy.
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )

        # Setting a seed clears TensorFlow's kernel cache, because kernels of
        # random numbers have state. Each test would then instantiate again
        # every function that tests share, which takes up to seconds. The seed
        # is part of a kernel's key: only one that a kernel has needs it.
        clear_kernels = context.pywrap_tfe.TFE_ContextClearCaches
        seeds_of_kernel = random_seed.get_seed
        seeds_used = set()

        def get_seed(op_seed):
            seeds_used.add(context.global_seed())
            return seeds_of_kernel(op_seed)

        def clear_kernels_of_seed(handle):
            if context.global_seed() in seeds_used:
                clear_kernels(handle)

        random_seed.get_seed = get_seed
        context.pywrap_tfe.TFE_ContextClearCaches = clear_kernels_of_seed

        # Each operation asks whether to filter tracebacks, and whether what
        # it is given follows a protocol, which Python 3.12 looks up once.
        traceback_utils.is_traceback_filtering_enabled = bool
        typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)

        from tests.faster_graphs import trace_faster
        from tests.simulated_gpu import reported_gpu, simulated_gpu  # noqa: F401


def pytest_configure(config):
    if "tf" not in globals():
        return
    # A quarter of the time of a search that is called once, and half of that
    # of a data set that is opened. Before a release, with another choice of
    # markers, all tests run as users do, optimized.
    if config.option.markexpr == "not slow":
        tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": True}
        )
        trace_faster()
    # Data sets have the options with which TensorFlow starts: now.
    with quiet_stderr():
        tf.config.list_logical_devices()


def pytest_collection_finish():
    gc.freeze()  # no collection has to look at what is there now
    gc.enable()
    # A model is a cycle of many objects: collected rarely, in large numbers.
    gc.set_threshold(20_000, 10, 10)


def pytest_sessionfinish():
    # pytest collects garbage twice after this, and the interpreter once more:
    # with millions of objects, each takes seconds.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_keras_state(seed):
    """Float32 and the test's own seed, whatever the test before has set."""
    keras.utils.set_random_seed(seed)
    keras.config.set_dtype_policy("float32")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture
def seed(request):
    """That of the test's name, or a new one each run with `--new-seeds`.

    One comparison of floats in 100,000 fails at an unlucky number: all of
    them, drawn anew, would fail a change that has nothing to do with it.
    """
    if request.config.getoption("new_seeds"):
        return request.getfixturevalue("new_seed")
    return zlib.crc32(request.node.nodeid.encode()) % 2**31


@pytest.fixture
def new_seed():
    """For proofs of learning: pytest prints it when the test fails."""
    value = secrets.randbelow(2**31)
    print(f"seed={value}")
    keras.utils.set_random_seed(value)
    return value


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder of a test, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def collect_new():
    """Collects garbage of the test: the objects of others take a second."""
    gc.disable()  # what is made from now on stays in the youngest generation
    yield functools.partial(gc.collect, 0)
    gc.enable()


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal: a process in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def sighup():
    """SIGHUP as in a terminal: `nohup` ignores it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def call(monkeypatch, capfd):
    """A function: what a command prints when it reads some lines.

    With a message the command prints nothing but that, and its code is 2.
    """

    def call(command, *arguments, lines=(), message=None):
        Path("input").write_text("".join(f"{line}\n" for line in lines))
        capfd.readouterr()
        with open("input") as file:
            monkeypatch.setattr(sys, "stdin", file)
            code = cli.main([command, *map(str, arguments)])
        printed, notes = capfd.readouterr()
        if message is None:
            assert code == 0, notes
            return printed
        assert (code, printed) == (2, "")
        [line] = notes.splitlines()
        assert message in line
        return notes

    return call


@pytest.fixture(scope="session")
def two_devices():
    # One for all tests. Strategies of one process number their collective
    # operations alike, and the second would find the shapes of the first.
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window; its event loop ends with the module."""
    api = pytest.importorskip(
        "playwright.sync_api",
        reason="needs playwright: pip install playwright",
        exc_type=ImportError,
    )
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=path,
                args=[
                    "--no-sandbox",
                    "--use-fake-device-for-media-stream",
                    "--use-fake-ui-for-media-stream",
                ],
            )
        except api.Error as error:
            pytest.skip(f"There is no Chromium: {error.message[:200]}")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def marian(tmp_path_factory):
    """What `tests.conversion.marian_oracle` has written."""
    folder = tmp_path_factory.mktemp("marian")
    path = Path(__file__).parent / "conversion" / "marian.tar.xz"
    unpack(path, folder)
    return folder
