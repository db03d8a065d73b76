"""Calls of TensorFlow that another thread can cancel."""

import contextlib
import threading

from tensorflow.python.eager import cancellation


class Cancellation:
    """Ends a call of a graph while it runs.

    TensorFlow checks it in the condition of each loop and before each function,
    so a search ends within one step. This costs nothing, whereas reading a
    clock in the graph would make its loops run one after the other. A call that
    is cancelled raises `tf.errors.CancelledError`.

    If TensorFlow lacks the private names that this needs, a call runs to its
    end.
    """

    def __init__(self):
        self._changes = threading.Lock()
        self._manager = None
        self._is_cancelled = False

    def cancel(self):
        """Ends the call in `scope`, and cancels those that follow."""
        with self._changes:
            self._is_cancelled = True
            if self._manager is not None:
                self._manager.start_cancel()

    @contextlib.contextmanager
    def scope(self):
        """A scope in which one call of this thread can be cancelled.

        Each call has its own manager, because a call that fails cancels its
        manager, which would cancel the next call, too.
        """
        manager = _ThreadsOwn.make()
        with self._changes:
            self._manager = manager
            if self._is_cancelled and manager is not None:
                manager.start_cancel()
        _current.manager = manager
        try:
            yield
        finally:
            _current.manager = None
            with self._changes:
                self._manager = None


class _ThreadsOwn(threading.local):
    """The `CancellationManager` of the thread that makes a call.

    TensorFlow's own context is shared by all threads.
    """

    manager = None

    @staticmethod
    def make():
        """A manager; None if TensorFlow has none."""
        make = getattr(cancellation, "CancellationManager", None)
        is_known = make and hasattr(cancellation, "_active_context")
        return make() if is_known else None

    @property
    def _impl(self):  # what TensorFlow asks of a manager
        return (self.manager or self.make())._impl


_current = _ThreadsOwn()
if _ThreadsOwn.make() is not None:
    cancellation._active_context = _current
