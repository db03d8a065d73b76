"""Steps of a model on its devices, and what is said where one fails."""

from kseq.models.training_errors import diverged, out_of_memory

_DIVERGED = "not finite"


class StepFunction:
    """A step of a model on the devices of its strategy, compiled.

    As what Keras makes of a step, but that the batch is taken out of the
    iterator before, and that it works with several machines.

    Args:
        model: `ExactModel`.
        step: a function of a batch; gives all devices the same logs.

    Call arguments:
        iterator: over `(inputs, labels, sample_weight)`.

    Returns:
        A dict of logs.
    """

    def __init__(self, model, step):
        self.model = model
        self._step = step
        self._compiled = None

    def __call__(self, iterator):
        if self._compiled is None:
            self._compiled = self._compile(iterator)
        return self._run(next(iterator))

    def _run(self, data):
        return self._compiled(data)

    def _compile(self, iterator):
        import tensorflow as tf

        strategy = self.model.distribute_strategy

        def step(data):
            return tf.nest.map_structure(
                lambda value: strategy.experimental_local_results(value)[0],
                strategy.run(self._step, args=(data,)),
            )

        if self.model.run_eagerly:
            return step
        # One over Python values has none; there the first batches show it.
        spec = getattr(iterator, "element_spec", None)
        return tf.function(
            step,
            input_signature=spec and [spec],
            reduce_retracing=True,
            autograph=False,
        )


class TrainFunction(StepFunction):
    """`train_step`, on a batch that is still at hand where it fails.

    Args:
        model: `ExactModel`.

    Raises:
        DivergedError: where loss or gradient are not finite.
        OutOfMemoryError: where the step has not enough memory.
    """

    def __init__(self, model):
        super().__init__(model, model.train_step)
        self.steps = 0

    def start(self):
        """Looks up how many steps have been made before this training."""
        self.steps = int(self.model.optimizer.iterations.numpy())

    def _run(self, data):
        import tensorflow as tf

        self.steps += 1
        try:
            return super()._run(data)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.ResourceExhaustedError,
        ) as error:
            # Nothing keeps TensorFlow from counting a step while it fails.
            self.model.optimizer.iterations.assign(self.steps - 1)
            raise self._explained(data, error) from error

    def _explained(self, data, error):
        """What a failed step is raised as."""
        import tensorflow as tf

        strategy = self.model.distribute_strategy
        parts = map(strategy.experimental_local_results, tf.nest.flatten(data))
        batches = [
            tf.nest.pack_sequence_as(data, part)
            for part in zip(*parts, strict=True)
        ]
        if isinstance(error, tf.errors.ResourceExhaustedError):
            return out_of_memory(self.steps, batches)
        if _DIVERGED in error.message:
            return diverged(self.model, self.steps, batches)
        return error


def check_finite(*values):
    """An operation that fails, and `train_function` with it, unless all are.

    Args:
        *values: () float tensors.
    """
    import tensorflow as tf

    finite = tf.reduce_all(tf.math.is_finite(tf.stack(values)))
    return tf.debugging.Assert(finite, [_DIVERGED, *values])
