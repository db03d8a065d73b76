"""One step of training, and what is said where it fails."""

from kseq.models.training_errors import diverged, out_of_memory

_DIVERGED = "not finite"


class TrainFunction:
    """`train_step`, on a batch that is still at hand where it fails.

    Keras takes the batch out of the iterator inside the graph.

    Args:
        model: `ExactModel`.

    Call arguments:
        iterator: over `(inputs, labels, sample_weight)`.

    Returns:
        A dict of logs.

    Raises:
        DivergedError: where loss or gradient are not finite.
        OutOfMemoryError: where the step has not enough memory.
    """

    def __init__(self, model):
        self.model = model
        self.steps = 0
        self._compiled = None

    def start(self):
        """Looks up how many steps have been made before this training."""
        self.steps = int(self.model.optimizer.iterations.numpy())

    def __call__(self, iterator):
        import tensorflow as tf

        if self._compiled is None:
            self._compiled = self._compile(iterator)
        data = next(iterator)
        self.steps += 1
        try:
            return self._compiled(data)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.ResourceExhaustedError,
        ) as error:
            # Nothing keeps TensorFlow from counting a step while it fails.
            self.model.optimizer.iterations.assign(self.steps - 1)
            raise self._explained(data, error) from error

    def _compile(self, iterator):
        import tensorflow as tf

        if self.model.run_eagerly:
            return self._step
        # One over Python values has none; there the first batches show it.
        spec = getattr(iterator, "element_spec", None)
        return tf.function(
            self._step,
            input_signature=spec and [spec],
            reduce_retracing=True,
            autograph=False,
        )

    def _step(self, data):
        import tensorflow as tf

        strategy = self.model.distribute_strategy
        # All devices report the same.
        return tf.nest.map_structure(
            lambda value: strategy.experimental_local_results(value)[0],
            strategy.run(self.model.train_step, args=(data,)),
        )

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
