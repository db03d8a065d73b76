"""Training steps that may update a model, counted on its devices."""

import contextlib
import threading

import tensorflow as tf


class StepGuard:
    """Decides on the devices whether a training step may update the model.

    A step whose loss or gradient is not finite may not, nor may any step after
    it, until the host has noticed: it reads the count of the updates only now
    and then, and then finds the model as it was before the first bad step.

    The state is not part of the model, and no checkpoint contains it.

    Args:
        strategy: `tf.distribute.Strategy` of the model.
    """

    def __init__(self, strategy):
        with strategy.scope():
            self._count = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._is_closed = tf.Variable(False, trainable=False)
        self._count_read = 0
        self._dry_runs = 0
        self._lock = threading.Lock()

    def admit(self, finite):
        """Part of a step, on each replica: whether it may update the model.

        Args:
            finite: () bool, the same on all replicas.

        Returns:
            () bool.
        """
        admitted = finite & ~self._is_closed.read_value()
        self._is_closed.assign(~admitted)
        self._count.assign_add(tf.cast(admitted, tf.int64))
        return admitted

    def read(self):
        """Waits for the devices.

        Returns:
            The number of steps that were admitted since the last call, int.
        """
        count = int(self._count.numpy())
        admitted, self._count_read = count - self._count_read, count
        return admitted

    def open(self):
        """Admits steps again after one that was not finite."""
        self._is_closed.assign(False)

    @contextlib.contextmanager
    def dry_run(self):
        """No step within it changes anything, in any thread."""
        with self._lock:
            self._dry_runs += 1
            self._is_closed.assign(True)
        try:
            yield
        finally:
            with self._lock:
                self._dry_runs -= 1
                if not self._dry_runs:
                    self._is_closed.assign(False)
