"""SIGTERM and Ctrl-C, answered where an exception is safe.

Python raises the exception of a signal wherever it is. Within TensorFlow that
may be in a call from C code or in `__del__`, where it is lost, turned into
another error, or ends in a segmentation fault.
"""

import contextlib
import signal
import sys
import threading
import time

# From these, an exception may not reach the code that called them.
_LIBRARIES = {"tensorflow", "keras", "importlib", "weakref", "_weakrefset"}

_PATIENCE = 15  # seconds, half of what schedulers wait before they kill

_pending = None


@contextlib.contextmanager
def stop_in_order():
    """SIGTERM raises SystemExit(143), Ctrl-C KeyboardInterrupt, both in order.

    Where TensorFlow or Keras is at work, they are raised as soon as it returns
    to the code that called it, or taken over by a callback (`take_over`), or
    raised all the same if that takes more than 15 seconds. What is open is
    cleaned up. A second signal is answered as Python does, at once.

    A signal that is ignored, or that has a handler already, is left alone.
    """
    global _pending
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number, default in (
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
        ):
            if signal.getsignal(number) == default:
                handlers[number] = default
                signal.signal(number, _stop)
    try:
        yield
    finally:
        _pending = None
        for number, handler in handlers.items():
            signal.signal(number, handler)


def take_over():
    """The signal that waits for the end of a call, and waits no longer.

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
    if number == signal.SIGTERM:
        default, error = signal.SIG_DFL, SystemExit(128 + number)
    else:
        default, error = signal.default_int_handler, KeyboardInterrupt()
    signal.signal(number, default)
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
