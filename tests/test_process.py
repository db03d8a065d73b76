import gc
import itertools
import os
import pty
import resource
import subprocess
import sys
import tempfile
import threading

import pytest

from kseq import process
from kseq.process import quiet_stderr

START_UP = b"I0000 cpu.cc:1] oneDNN custom operations are on. You may see\n"


def test_a_terminal_shows_a_growing_notice_until_the_end():
    shown, terminal = pty.openpty()
    kept = os.dup(2)
    os.dup2(terminal, 2)
    try:
        with quiet_stderr(notice="Wait ..."):
            os.write(2, START_UP + b"a warning\n")
            grown = b""
            while not grown.endswith(b"...."):
                grown += os.read(shown, 999)
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(shown, 999)
    finally:
        os.dup2(kept, 2)
        for number in (kept, terminal, shown):
            os.close(number)
    dots = text.count(b".")  # if the machine was slow to go on
    blank = b" " * (len(grown) + dots)
    assert grown == b"Wait ...."
    assert text == b"." * dots + b"\r" + blank + b"\ra warning\r\n"


def test_elsewhere_there_is_no_notice(capfd):
    with quiet_stderr(notice="Wait ..."):
        os.write(2, START_UP + b"a warning\n")
    assert capfd.readouterr().err == "a warning\n"


SHOWN_BY_TENSORFLOW = b"""\
WARNING: All log messages before absl::InitializeLog() is called are written
I0000 port.cc:153] oneDNN custom operations are on. You may see slightly
I0000 util.cc:70] oneDNN supports DT_BFLOAT16 only on platforms with AVX512
I0000 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use
To enable the following instructions: AVX2 FMA, in other operations, rebuild
I0000 cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will
W0000 py_utils.cc:38] TF-TRT Warning: Could not find TensorRT
E0000 cuda_fft.cc:477] Unable to register cuFFT factory: Attempting to register
E0000 cuda_blas.cc:1407] Unable to register cuBLAS factory: Attempting to
W0000 computation_placer.cc:177] computation placer already registered. Please
E0000 cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed \
call to cuInit: UNKNOWN ERROR (303)
E0000 cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no \
CUDA-capable device is detected
"""
WARNINGS = b"""\
E0000 cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out
E0000 cuda_dnn.cc:8579] Loaded cuDNN 8.9.0, but the source was compiled with 9.3
W0000 gpu_device.cc:2341] Cannot dlopen some GPU libraries.
UserWarning: A file was not closed.
"""


def test_start_up_lines_are_dropped_and_warnings_are_kept(capfd):
    hidden = SHOWN_BY_TENSORFLOW.splitlines(keepends=True)
    kept = WARNINGS.splitlines(keepends=True)
    with quiet_stderr():
        for lines in itertools.zip_longest(hidden, kept, fillvalue=b""):
            os.write(2, b"".join(lines))
    assert capfd.readouterr().err.encode() == WARNINGS


def test_threads_that_hide_lines_leave_standard_error(capfd):
    """Each would put back what it has found, and the second one the hidden."""
    is_hidden, is_over, second_began = (threading.Event() for _ in range(3))

    def hide_first():
        with quiet_stderr():
            is_hidden.set()
            assert is_over.wait(20)

    def hide_second():
        with quiet_stderr():
            second_began.set()
            first.join(20)

    first = threading.Thread(target=hide_first)
    second = threading.Thread(target=hide_second)
    first.start()
    assert is_hidden.wait(20)
    second.start()
    second_began.wait(0.2)
    is_over.set()
    second.join(20)
    os.write(2, b"shown")
    assert capfd.readouterr().err == "shown"


def test_a_fresh_process_starts_silently_and_keeps_freed_memory():
    program = """
from kseq.process import start_keras
start_keras(for_search=True)
import resource, sys
import numpy as np
import tensorflow as tf

print(tf.config.threading.get_intra_op_parallelism_threads())
faults = []
for _ in range(3):
    two = [np.ones(24 * 2**20, np.int8) for _ in range(2)]
    del two  # 12288 pages
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(sys.platform != "linux" or faults[2] - faults[1] < 1000)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\nTrue\n", b"")


def test_a_tensorflow_that_has_started_keeps_its_threads(monkeypatch):
    def refuse(threads):
        raise RuntimeError("cannot be modified after initialization")

    name = "tensorflow.config.threading.set_intra_op_parallelism_threads"
    monkeypatch.setattr(name, refuse)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    process.start_tensorflow(for_search=True)


def test_without_standard_error_or_a_temporary_directory(monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", "/no-such-directory")
    with quiet_stderr():
        os.write(2, START_UP)
    assert capfd.readouterr().err.encode() == START_UP
    monkeypatch.undo()
    monkeypatch.setattr(sys, "stderr", None)
    with quiet_stderr():
        os.write(2, START_UP)
    assert capfd.readouterr().err.encode() == START_UP


def test_garbage_is_collected_again(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras")
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(gc.isenabled()))
    with process._without_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert frozen == [False]


_STEPS = """
import resource

from kseq.process import start_keras

start_keras()
import tensorflow as tf

rows = tf.zeros((10_000, 1000))  # 40 MB
step = tf.function(lambda: tf.reduce_sum(tf.exp(rows * 2.0)))
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_no_memory_is_kept_where_addresses_are_limited(monkeypatch):
    monkeypatch.delenv("TF_CPU_ALLOCATOR_USE_BFC", raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**34, 2**34))
    process._keep_freed_tensors()
    assert "TF_CPU_ALLOCATOR_USE_BFC" not in os.environ


def test_memory_is_kept_where_addresses_are_not_limited(monkeypatch):
    unlimited = (resource.RLIM_INFINITY,) * 2
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)
    # They are removed when the test ends.
    for name in ("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB"):
        monkeypatch.setenv(name, "")
        del os.environ[name]
    process._keep_freed_tensors()
    assert os.environ["TF_CPU_ALLOCATOR_USE_BFC"] == "1"
    pages = int(os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"]) * 2**20
    pages //= os.sysconf("SC_PAGE_SIZE")
    assert pages == pytest.approx(os.sysconf("SC_PHYS_PAGES"), rel=1e-3)


# TensorFlow starts once more; above are the settings that keep the memory.
@pytest.mark.slow
def test_the_memory_of_a_step_serves_the_next():
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TF_CPU_", "MALLOC_"))
    }
    command = [sys.executable, "-c", _STEPS]
    pages = subprocess.check_output(command, env=environment, text=True)
    assert int(pages) < 40e6 / os.sysconf("SC_PAGE_SIZE")  # of one of the five


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("kseq train translate_lstm", ["kseq", "train", "translate_lstm"]),
        ("kseq train ./my page.py", ["kseq", "train", "./my page.py"]),
        (None, ["python", "recipes/translate_lstm.py"]),
    ],
)
def test_the_command_is_the_one_that_was_typed(monkeypatch, command, expected):
    argv = ["recipes/translate_lstm.py", "--steps", "3"]
    monkeypatch.setattr(sys, "argv", argv)
    page = sys.modules["__main__"]
    monkeypatch.setattr(page, "__command__", command, raising=False)
    assert process.started_command() == [*expected, "--steps", "3"]
