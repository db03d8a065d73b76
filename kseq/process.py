"""Starts Keras and TensorFlow in a process, and stops it in order.

They are imported without their start-up messages.

SIGTERM, Ctrl-C and a closed terminal (SIGHUP) raise an exception where that is
safe. By default Python raises it at any point: within TensorFlow in a call from
C code or in `__del__`, where it is lost, becomes a different error, or causes a
segmentation fault.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import re
import resource
import select
import signal
import sys
import tempfile
import threading
import time

from kseq.user_error import UserError

# Keras and TensorFlow import these, if they are installed, for plots, wrappers
# and converters, which takes a second. A recipe may plot; a command does not.
OPTIONAL = ("jax", "matplotlib", "scipy", "sklearn")

# What TensorFlow prints on every machine, and on machines without a GPU.
_START_UP = re.compile(
    rb"All log messages before absl::InitializeLog"
    rb"|\] oneDNN custom operations are on"
    rb"|\] oneDNN supports DT_\w+ only on platforms with"
    rb"|\] This TensorFlow binary is optimized"
    rb"|^To enable the following instructions"
    rb"|\] Could not find cuda drivers"
    rb"|\] Could not find TensorRT|TF-TRT Warning"
    rb"|\] Unable to register cu(FFT|DNN|BLAS) factory"
    rb"|\] computation placer already registered"
    rb"|failed call to cuInit: .*(UNKNOWN ERROR \(303\)|CUDA_ERROR_NO_DEVICE)"
)

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # in <malloc.h>
_MOST_COLUMNS = 60  # of a notice: a second line could not be removed

# From these, an exception may not reach the code that called them.
_LIBRARIES = {"tensorflow", "keras", "importlib", "weakref", "_weakrefset"}
_PATIENCE = 15  # seconds, half of what schedulers wait before they kill

# Held while standard error is redirected: a second thread would find, and put
# back, what the first one has made of it.
_redirecting = threading.RLock()

_pending = None  # the signal that waits for the end of a call


def start_keras(without=(), for_search=False):
    """Imports Keras and lists the devices, without TensorFlow's start-up lines.

    Args:
        without: names of modules to hide from Keras.
        for_search: bool, whether an operation runs on one processor, unless the
            environment says how many (TF_NUM_INTRAOP_THREADS). A search has
            many small operations: each answer is faster, and the other
            processors are left to other requests. Freed memory is kept for the
            next step of a search, otherwise for the next step of training.

    Raises:
        UserError: if Keras is set to use a different backend.
    """
    backend = os.environ.get("KERAS_BACKEND")
    if backend != "tensorflow":
        raise UserError(
            f"KERAS_BACKEND is {backend!r}, and this needs TensorFlow. Unset "
            "it, or set it to tensorflow."
        )
    hidden = [name for name in without if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        with _without_garbage_collection():
            start_tensorflow(for_search)
    finally:
        for name in hidden:
            del sys.modules[name]


def start_tensorflow(for_search=False):
    """Does the same with all modules, whatever Keras's backend is."""
    with quiet_stderr(notice="Starting TensorFlow ..."):
        importlib.import_module("keras")
        tensorflow = importlib.import_module("tensorflow")
        if for_search:
            _keep_freed_memory()
            if "TF_NUM_INTRAOP_THREADS" not in os.environ:
                _run_operations_on_one_processor(tensorflow)
        else:
            _keep_freed_tensors()
        tensorflow.config.list_physical_devices()
        importlib.import_module("kseq.devices").grow_gpu_memory()
        if not os.environ.get("TF_CONFIG"):  # a cluster must come first
            # The first kernel prints which instructions the processor lacks.
            with tensorflow.device("CPU"):
                tensorflow.transpose(tensorflow.zeros((1, 1), tensorflow.bool))


@contextlib.contextmanager
def _without_garbage_collection():
    """Disables garbage collection while a million permanent objects are made.

    Collection would take a third of the import's time, and more time later.
    """
    if "keras" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _keep_freed_memory():
    """Makes glibc keep the memory of large tensors for the next ones.

    Otherwise each step of a search allocates its logits, several megabytes,
    page by page from the system, which takes a tenth of its time. Other C
    libraries have no such setting, and the environment may have its own.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, 2**25)  # its maximum
        mallopt(_M_TRIM_THRESHOLD, 2**30)


def _keep_freed_tensors():
    """Makes TensorFlow keep the memory of CPU tensors for the next ones.

    Otherwise each step of training allocates its tensors again, page by page
    from the system, which takes a quarter of its time. glibc keeps no block
    larger than 32 MB. If the address space is limited, TensorFlow would leave
    none for others.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    # Otherwise TensorFlow's limit is 64 GB, whatever the machine has.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(memory >> 20))


def _run_operations_on_one_processor(tensorflow):
    with contextlib.suppress(RuntimeError):  # TensorFlow has started already
        tensorflow.config.threading.set_intra_op_parallelism_threads(1)


@contextlib.contextmanager
def quiet_stderr(notice=""):
    """Hides TensorFlow's start-up lines; others are printed at the end.

    One thread at a time: a second one waits until the first has finished.
    Without standard error, or a temporary directory, nothing is hidden.

    Args:
        notice: str, shown meanwhile if standard error is a terminal, with
            another dot each second.
    """
    with _redirecting, contextlib.ExitStack() as files:
        try:
            kept = os.dup(2)
            files.callback(os.close, kept)
            printed = files.enter_context(tempfile.TemporaryFile())
        except OSError:
            printed = None
        if printed is None or sys.stderr is None:
            yield
            return

        sys.stderr.flush()
        shown = notice and os.isatty(kept)
        os.dup2(printed.fileno(), 2)
        try:
            with _notice(kept, notice) if shown else contextlib.nullcontext():
                yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            printed.seek(0)
            lines = [line for line in printed if not _START_UP.search(line)]
            with contextlib.suppress(OSError):  # it is full
                os.write(2, b"".join(lines))


@contextlib.contextmanager
def _notice(terminal, text):
    """Shows a text that grows by a dot each second, and removes it."""
    is_over = threading.Event()
    width = os.write(terminal, text.encode())

    def grow():
        nonlocal width
        with contextlib.suppress(OSError):  # the terminal was closed
            while width < _MOST_COLUMNS and not is_over.wait(1):
                width += os.write(terminal, b".")

    dots = threading.Thread(target=grow, daemon=True)
    dots.start()
    try:
        yield
    finally:
        is_over.set()
        dots.join()
        with contextlib.suppress(OSError):
            os.write(terminal, f"\r{' ' * width}\r".encode())


@contextlib.contextmanager
def stop_in_order():
    """SIGTERM raises SystemExit(143), Ctrl-C KeyboardInterrupt, both in order.

    SIGHUP, of a terminal that is closed, raises SystemExit(129). Where
    TensorFlow or Keras is at work, they are raised as soon as it returns to the
    code that called it, or taken over by a callback (`take_over`), or raised
    all the same if that takes more than 15 seconds. What is open is cleaned up.
    A second signal is answered as Python does, at once, except SIGHUP, which
    may come twice, or right after SIGTERM.

    A signal that is ignored, or that has a handler already, is left alone.
    """
    global _pending
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in stop_signals():
            if signal.getsignal(number) == _default(number):
                handlers[number] = signal.signal(number, _stop)
    try:
        yield
    finally:
        _pending = None
        for number, handler in handlers.items():
            signal.signal(number, handler)


def stop_signals():
    """The signals that stop a process: SIGTERM, SIGINT and SIGHUP.

    The last one is left out if it is ignored, as `nohup` has it.
    """
    signals = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def discard_lost_output():
    """Discards what is printed from now on if nobody can read it.

    That is the case if the terminal was closed, or if Ctrl-C has also ended the
    program that the output is piped into. What must be saved is not lost then
    to an error in printing.
    """
    for number in (1, 2):
        state = select.poll()
        state.register(number, 0)
        if state.poll(0):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, number)
            os.close(nothing)


def take_over():
    """Takes the signal that is waiting for the end of a call, if any.

    Returns:
        its number, or None.
    """
    global _pending
    number, _pending = _pending, None
    if number is not None:
        sys.settrace(None)
    return number


def _stop(number, frame):
    global _pending
    discard_lost_output()
    is_ctrl_c = number == signal.SIGINT
    error = KeyboardInterrupt() if is_ctrl_c else SystemExit(128 + number)
    if signal.getsignal(signal.SIGHUP) == _stop:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # never the second one
    if number != signal.SIGHUP:
        signal.signal(number, _default(number))
    caller = _outside_libraries(frame)
    if caller in (None, frame):
        raise error

    def on_return(frame, event, argument):
        # Not at a new line: at the one that ends a `with`, nothing is closed.
        if event != "line" and take_over() is not None:
            raise error
        return on_return

    deadline = time.monotonic() + _PATIENCE

    def on_call(frame, event, argument):
        # In `fit`, for example, if no callback of it has taken over.
        if time.monotonic() > deadline and take_over() is not None:
            raise error

    _pending = number
    caller.f_trace = on_return
    caller.f_trace_opcodes = True
    sys.settrace(on_call)


def _default(number):
    is_ctrl_c = number == signal.SIGINT
    return signal.default_int_handler if is_ctrl_c else signal.SIG_DFL


def _outside_libraries(frame):
    """The innermost frame that no library has called, or None."""
    found = None
    while frame is not None:
        module, _, _ = frame.f_globals.get("__name__", "").partition(".")
        if module in _LIBRARIES:
            found = None
        elif found is None:
            found = frame
        frame = frame.f_back
    return found


def started_command():
    """The command that started this process, a list of str."""
    if command := getattr(sys.modules["__main__"], "__command__", None):
        return [*command.split(" ", 2), *sys.argv[1:]]  # kseq train NAME
    program = sys.argv[0]
    return [*(["python"] if program.endswith(".py") else []), *sys.argv]
