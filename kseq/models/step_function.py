"""Compiled steps of a model on its devices, and what a failed one raises."""

import functools

import tensorflow as tf

from kseq.models.check_ids import check_ids
from kseq.models.training_errors import diverged, out_of_memory

_DIVERGED = "not finite"


class StepFunction:
    """A step of a model on the devices of its strategy, compiled.

    It differs from the function that Keras makes of a step: the batch is
    taken from the iterator outside of the compiled part, several machines
    are supported, and each signature of the data is compiled once, whatever
    the lengths of its batches. The ids of the first batch after `start` are
    checked.

    Args:
        model: `ExactModel`.
        step: a function of a batch; returns the same logs on every device.

    Call arguments:
        iterator: over `(inputs, labels, sample_weight)`.

    Returns:
        A dict of logs.

    Raises:
        ArgumentError: if the first batch has an id beyond the vocabulary.
    """

    def __init__(self, model, step):
        self.model = model
        self._step = step
        self._compiled = []
        self._is_checked = False

    def start(self):
        """Begins a call of `fit` or `evaluate`."""
        self._is_checked = False

    def __call__(self, iterator):
        # An iterator over Python values has no signature.
        spec = getattr(iterator, "element_spec", None)
        data = next(iterator)
        if not self._is_checked:
            for part in self._parts(data):
                check_ids(self.model, part)
            self._is_checked = True
        return self._run(self._function_of(spec), data)

    def _parts(self, data):
        """A batch as it is on each of the devices of this machine."""
        strategy = self.model.distribute_strategy
        parts = map(strategy.experimental_local_results, tf.nest.flatten(data))
        return [
            tf.nest.pack_sequence_as(data, part)
            for part in zip(*parts, strict=True)
        ]

    def _run(self, function, data):
        return function(data)

    def _function_of(self, spec):
        for known, function in self._compiled:
            if known == spec:
                return function
        function = self._compile(spec)
        self._compiled.append((spec, function))
        return function

    def _compile(self, spec):
        strategy = self.model.distribute_strategy

        def step(data):
            return tf.nest.map_structure(
                lambda value: strategy.experimental_local_results(value)[0],
                strategy.run(self._step, args=(data,)),
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
        )


class TrainFunction(StepFunction):
    """`train_step`, with an explanation where it fails.

    It counts the steps in `steps_done` of the model, also those whose update
    mixed_float16 skips, which the optimizer does not count.

    Args:
        model: `ExactModel`.

    Raises:
        DivergedError: if loss or gradient are not finite.
        OutOfMemoryError: if the step runs out of memory.
    """

    def __init__(self, model):
        super().__init__(model, model.train_step)

    def start(self):
        """Begins a call of `fit`; the model may have been loaded."""
        super().start()
        updates = int(self.model.optimizer.iterations.numpy())
        self.model.steps_done = max(self.model.steps_done, updates)

    def _run(self, function, data):
        updates = tf.identity(self.model.optimizer.iterations.value)
        try:
            logs = super()._run(function, data)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.ResourceExhaustedError,
        ) as error:
            # TensorFlow may have counted the step that failed.
            self.model.optimizer.iterations.assign(updates)
            raise self._explained(data, error) from error
        self.model.steps_done += 1
        return logs

    def _explained(self, data, error):
        """The error to raise for a failed step."""
        step, batches = self.model.steps_done + 1, self._parts(data)
        if isinstance(error, tf.errors.ResourceExhaustedError):
            return out_of_memory(self.model, step, batches)
        if _DIVERGED in error.message:
            return diverged(self.model, step, batches)
        return error


def check_finite(*values):
    """An operation that fails, and the step with it, unless all are finite.

    Args:
        *values: () float tensors.
    """
    finite = tf.reduce_all(tf.math.is_finite(tf.stack(values)))
    return tf.debugging.Assert(finite, [_DIVERGED, *values])
