"""Compiled steps of a model on its devices, and what a failed one raises."""

import functools
import threading
import time

import tensorflow as tf

from kseq.devices import has_gpu, is_out_of_memory
from kseq.models.optimizer_update import compiles_whole_step
from kseq.models.training_errors import (
    check_ids,
    diverged_error,
    no_libdevice_error,
    out_of_memory_error,
)
from kseq.ops import is_long, long_sequences

# Steps on a GPU after which the host reads its results. It waits for them, and
# the GPU for the next step.
READ_EVERY = 10


class StepFunction:
    """A step of a model on the devices of its strategy, compiled.

    It differs from the function that Keras makes of a step: the batch is
    taken from the iterator outside of the compiled part, several machines
    are supported, and each signature of the data is compiled once, whatever
    the lengths of its batches, and once more for long ones, to which attention
    is in blocks; XLA compiles each length once. The ids of the first batch
    after `start` are checked.

    On a GPU, the logs are those of the first step and of every tenth, so that
    no other step waits for them. `end_epoch` reads those of the last one.

    Args:
        model: `ExactModel`.
        step: a function of a batch; returns the same logs on every device.
        jit_compile: bool, whether XLA compiles it as a whole.

    Call arguments:
        iterator: over `(inputs, labels, sample_weight)`.

    Returns:
        A dict of logs, numbers: the same each time, which later calls change.

    Raises:
        ArgumentError: if the first batch has an id beyond the vocabulary.
    """

    def __init__(self, model, step, jit_compile=False):
        self.model = model
        self._step = step
        self._jit_compile = jit_compile
        self._compiled = []
        self._lock = threading.Lock()  # `compile_shape` is called in threads
        self._is_checked = False
        self._logs = {}
        self._unread = None  # the logs of the last step, on its device
        self._steps = 0

    def start(self):
        """Begins a call of `fit` or `evaluate`."""
        self._is_checked = False
        self._logs = {}
        self._steps = 0

    def __call__(self, iterator):
        # An iterator over Python values has no signature.
        spec = getattr(iterator, "element_spec", None)
        data = self._next(iterator)
        if not self._is_checked:
            self._check_ids(data)
            self._is_checked = True
        self._unread = self._run(self._function_of(spec, data), data)
        self._steps += 1
        is_shown = self._steps == 1 or self._steps % READ_EVERY == 0
        if is_shown or not has_gpu():
            self.read()
        return self._logs

    def end_epoch(self):
        """Reads the logs of the last step; the next one begins an epoch."""
        self.read()
        self._steps = 0

    def read(self):
        """Updates the logs with those of the last step."""
        if self._unread is not None:
            logs, self._unread = self._unread, None
            # In place: Keras keeps what the last step has returned.
            self._logs.update({k: float(value) for k, value in logs.items()})

    def _check_ids(self, data):
        for part in self._parts(data):
            check_ids(self.model, part)

    def _parts(self, data):
        """A batch as it is on each of the devices of this machine."""
        strategy = self.model.distribute_strategy
        parts = map(strategy.experimental_local_results, tf.nest.flatten(data))
        return [
            tf.nest.pack_sequence_as(data, part)
            for part in zip(*parts, strict=True)
        ]

    def _next(self, iterator):
        return next(iterator)

    def _run(self, function, data):
        return function(data)

    def _function_of(self, spec, data):
        key = spec, self._are_long(data)
        with self._lock:
            for known, function in self._compiled:
                if known == key:
                    return function
            function = self._compile(*key)
            self._compiled.append((key, function))
            return function

    def _compile(self, spec, are_long):
        strategy = self.model.distribute_strategy

        def step(data):
            with long_sequences(are_long):
                logs = strategy.run(self._step, args=(data,))
            return tf.nest.map_structure(
                lambda value: strategy.experimental_local_results(value)[0],
                logs,
            )

        if self.model.run_eagerly:
            return step
        return tf.function(
            # A partial, for TensorFlow counts the tracings of functions that
            # share their code together, and warns of many.
            functools.partial(step),
            input_signature=spec and [spec],
            reduce_retracing=True,
            autograph=False,
            jit_compile=self._jit_compile,
        )

    def _are_long(self, data):
        """Whether attention to a batch is in blocks."""
        shapes = [
            tensor.shape
            for tensor in tf.nest.flatten(self._parts(data))
            if tensor is not None
        ]
        return any(
            is_long(shape[1], shape[1]) for shape in shapes if len(shape) > 1
        )


class TrainFunction(StepFunction):
    """`train_step`, with an explanation where it fails.

    It counts the steps in `steps_done` of the model, also those whose update
    mixed_float16 skips, which the optimizer does not count, and the time in
    which they wait for a batch in `seconds_waiting`.

    Args:
        model: `ExactModel`.

    Raises:
        DivergedError: if loss or gradient are not finite. The model is as it
            was before that step, also if the logs are read some steps later.
        OutOfMemoryError: if the step runs out of memory.
        UserError: if XLA does not find the part of CUDA that it needs.
    """

    def __init__(self, model):
        super().__init__(model, model.train_step, compiles_whole_step(model))
        self._batches = []  # of the steps since the last reading

    def start(self):
        """Begins a call of `fit`; the model may have been loaded."""
        self.read()  # where the last one was interrupted
        self.model.step_guard.read()  # and where a step failed
        super().start()
        self._count_updates()

    def _count_updates(self):
        updates = int(self.model.optimizer.iterations.numpy())
        self.model.steps_done = max(self.model.steps_done, updates)

    def compile_shape(self, data, spec=None):
        """Compiles the step for batches of one shape, and trains nothing.

        Args:
            data: a batch of that shape, as it comes from the iterator; its
                values do not matter, but must be valid ids.
            spec: the `element_spec` of the iterator that training will read.
        """
        with self.model.step_guard.dry_run():
            super()._run(self._function_of(spec, data), data)

    def read(self):
        batches, self._batches = self._batches, []
        if batches:
            self._check_finite(batches)
        super().read()

    def _check_finite(self, batches):
        count = self.model.step_guard.read()
        if count == len(batches):
            return
        self._unread = None
        self.model.step_guard.open()
        self.model.steps_done -= len(batches) - count
        # XLA reads no label beyond the vocabulary: the loss is NaN.
        self._check_ids(batches[count])
        raise diverged_error(
            self.model, self.model.steps_done + 1, self._parts(batches[count])
        )

    def _next(self, iterator):
        start = time.perf_counter()
        data = next(iterator)
        self.model.seconds_waiting += time.perf_counter() - start
        return data

    def _run(self, function, data):
        if self._steps == 0:  # a callback may have restored the optimizer
            self._count_updates()
        try:
            logs = super()._run(function, data)
        except tf.errors.OpError as error:
            if "libdevice" in error.message:
                raise no_libdevice_error() from error
            if not is_out_of_memory(error):
                raise
            step = self.model.steps_done + 1
            parts = self._parts(data)
            raise out_of_memory_error(self.model, step, parts) from error
        self._batches.append(data)
        self.model.steps_done += 1
        return logs
