"""A keras.Model whose training step is exact on any number of devices."""

import itertools

import keras
from keras import ops

from kseq.models.cross_entropy import cross_entropy
from kseq.models.step_function import (
    StepFunction,
    TrainFunction,
    check_finite,
)
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class ExactModel(keras.Model):
    """A functional model trained by cross-entropy, exactly, on any devices.

    Each replica sums the loss over its tokens; sums and gradients are added
    over micro-batches and replicas, and only then divided by the number of
    tokens in the global batch and clipped:

        loss = sum(weight * token_loss) / sum(weight)

    So the same global batch gives the same update on one device, on several,
    and in several micro-batches. Stock Keras averages the means of replicas
    and clips before it adds, which is neither.

    Data are `(inputs, labels, sample_weight)`: labels (..., ) int, one for
    each row of the model's logits (..., V), weights of the same shape.

    Training and `evaluate` report means over real tokens: `loss`,
    `perplexity` (of the labels, without smoothing) and `accuracy`; and
    means over steps: `tokens` and `padding`, the fraction of places that hold
    none, of the labels or, where a row has but one label, of the
    `source_ids` that it is for. Training adds `gradient_norm`, before
    clipping. `evaluate` leaves label smoothing out of its loss.

    A step whose loss or gradient is not finite is not made: `fit` raises
    `DivergedError`, which says where it began. With mixed_float16 gradients
    may overflow, and the optimizer deals with it. A step without enough
    memory raises `OutOfMemoryError`.

    Args:
        *args: see `keras.Model`, as all other arguments.
        dtype: dtype policy or its name.
        **kwargs: see `keras.Model`.
    """

    def __init__(self, *args, dtype=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.dtype_policy = keras.dtype_policies.get(dtype)

    def compile(
        self,
        optimizer,
        *,
        label_smoothing=0.0,
        clip_norm=None,
        accumulation_steps=1,
        **kwargs,
    ):
        """Configures training.

        Args:
            optimizer: a Keras optimizer without clipping and accumulation of
                its own, which would not be exact.
            label_smoothing: float in [0, 1), probability spread evenly over
                the vocabulary.
            clip_norm: float, largest global norm of the gradient, or None.
            accumulation_steps: int, micro-batches that a batch is cut into
                to save memory. The update stays the same.
            **kwargs: passed to `keras.Model.compile`.

        Raises:
            ValueError: where a value is out of range or exactness would be
                lost.
        """
        _check_compile(
            optimizer, label_smoothing, clip_norm, accumulation_steps
        )
        kwargs.setdefault("jit_compile", False)
        super().compile(optimizer=optimizer, **kwargs)
        self.label_smoothing = label_smoothing
        self.clip_norm = clip_norm
        self.accumulation_steps = accumulation_steps
        self._progress = [
            keras.metrics.Mean(name=name)
            for name in ("loss", "accuracy", "tokens", "padding")
        ]
        self._progress.append(_Perplexity(name="perplexity"))
        self._gradient_norm = keras.metrics.Mean(name="gradient_norm")
        self.optimizer.build(self.trainable_variables)

    @property
    def metrics(self):
        if not self.compiled:
            return []
        return [*self._progress, self._gradient_norm]

    def get_compile_config(self):
        config = super().get_compile_config()
        if not self.compiled:
            return config
        for name in ("label_smoothing", "clip_norm", "accumulation_steps"):
            config[name] = getattr(self, name)
        return config

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Nothing: a functional model is built, and `compile` built the rest.

        Keras would read a batch ahead here, and fail under a strategy where
        the first one does not divide evenly (or there are several workers).
        """

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = TrainFunction(self)
        self.train_function.start()

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = StepFunction(self, self.test_step)

    def train_step(self, data):
        import tensorflow as tf

        # Of mixed_float16; 1 for every other policy.
        scale = self.optimizer.scale_loss(tf.constant(1.0))
        totals = None
        for batch in _micro_batches(data, self.accumulation_steps):
            # One after the other, or no memory would be saved.
            with tf.control_dependencies(tf.nest.flatten(totals or [])):
                part = self._sums_and_gradients(batch, scale)
                totals = (
                    tf.nest.map_structure(tf.add, totals, part)
                    if totals
                    else part
                )

        replica = tf.distribute.get_replica_context()
        sums, gradients = replica.all_reduce("SUM", totals)
        factor = 1 / tf.maximum(sums["weight"], 1.0)
        norm = tf.linalg.global_norm(gradients) * factor
        if self.clip_norm is not None:
            limit = self.clip_norm * scale
            factor *= tf.where(tf.math.is_finite(norm), limit, norm)
            factor /= tf.maximum(norm, limit)
        # Gradients of a scaled loss may overflow: the optimizer sees to it.
        is_scaled = isinstance(
            self.optimizer, keras.optimizers.LossScaleOptimizer
        )
        with tf.control_dependencies(
            [check_finite(sums["loss"], *([] if is_scaled else [norm]))]
        ):
            factor = tf.identity(factor)

        # Keras will add the gradients of the replicas once more.
        factor /= replica.num_replicas_in_sync
        self.optimizer.apply(
            [gradient * factor for gradient in gradients],
            self.trainable_variables,
        )
        self._gradient_norm.update_state(norm / scale)
        reported = self._report(sums)
        return {**reported, "gradient_norm": self._gradient_norm.result()}

    def test_step(self, data):
        import tensorflow as tf

        replica = tf.distribute.get_replica_context()
        sums = self._sums(data, label_smoothing=0.0, training=False)
        return self._report(replica.all_reduce("SUM", sums))

    def loss_and_gradients(self, data):
        """Those of one batch, as training sees them.

        Args:
            data: `(inputs, labels, sample_weight)`.

        Returns:
            The loss, (), and a list with the gradient of its mean for each
            of `trainable_variables`.
        """
        sums, gradients = self._sums_and_gradients(data, scale=1.0)
        weight = ops.maximum(sums["weight"], 1.0)
        return sums["loss"] / weight, [g / weight for g in gradients]

    def _sums_and_gradients(self, data, scale):
        """`_sums`, and the gradients of `scale` times their loss."""
        import tensorflow as tf

        with tf.GradientTape() as tape:
            sums = self._sums(data, self.label_smoothing, training=True)
            # A mean while it flows back, or float16 overflows.
            count = tf.maximum(sums["labels"], 1.0)
            loss = sums["loss"] / count * scale
        gradients = tape.gradient(
            loss, self.trainable_variables, unconnected_gradients="zero"
        )
        return sums, [tf.convert_to_tensor(g) * count for g in gradients]

    def _sums(self, data, label_smoothing, training):
        """Sums over the places of one batch, each () float32."""
        inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
        logits = self(inputs, training=training)
        losses, likelihoods, right = cross_entropy(
            labels, logits, label_smoothing
        )
        if weights is None:
            weights = ops.ones_like(losses)
        weights = ops.cast(weights, "float32")
        real = weights > 0
        if len(real.shape) == 1 and isinstance(inputs, dict):
            real = padding_mask(inputs["source_ids"])
        return {
            "loss": ops.sum(losses * weights),
            "likelihood": ops.sum(likelihoods * weights),
            "right": ops.sum(ops.cast(right, "float32") * weights),
            "weight": ops.sum(weights),
            "real": ops.sum(ops.cast(real, "float32")),
            "places": ops.cast(ops.size(real), "float32"),
            "labels": ops.cast(ops.size(weights), "float32"),
        }

    def _report(self, sums):
        """Updates the metrics with sums over the global batch.

        Every replica is given the same sums: Keras adds up the totals and the
        counts of replicas, so that their quotient stays right.
        """
        weight = ops.maximum(sums["weight"], 1.0)
        places = ops.maximum(sums["places"], 1.0)
        loss, accuracy, tokens, padding, perplexity = self._progress
        loss.update_state(sums["loss"] / weight, weight)
        accuracy.update_state(sums["right"] / weight, weight)
        perplexity.update_state(sums["likelihood"] / weight, weight)
        tokens.update_state(sums["real"])
        padding.update_state(1 - sums["real"] / places, places)
        return {metric.name: metric.result() for metric in self._progress}


class _Perplexity(keras.metrics.Mean):
    """exp of the mean, which is a negative log-likelihood."""

    def result(self):
        return ops.exp(super().result())


def _check_compile(optimizer, label_smoothing, clip_norm, accumulation_steps):
    if not 0 <= label_smoothing < 1:
        raise ValueError(
            "label_smoothing must be in [0, 1). "
            f"Received: label_smoothing={label_smoothing}"
        )
    if clip_norm is not None and clip_norm <= 0:
        raise ValueError(
            f"clip_norm must be positive. Received: clip_norm={clip_norm}"
        )
    if accumulation_steps < 1:
        raise ValueError(
            "accumulation_steps must be at least 1. "
            f"Received: accumulation_steps={accumulation_steps}"
        )
    for name in (
        "clipnorm",
        "global_clipnorm",
        "clipvalue",
        "gradient_accumulation_steps",
    ):
        value = getattr(optimizer, name, None)
        if value is not None:
            raise ValueError(
                f"{name} of an optimizer is not exact on several devices: use "
                "compile(clip_norm=..., accumulation_steps=...). "
                f"Received: {name}={value}"
            )


def _micro_batches(data, count):
    """Cuts a nest of (B, ...) tensors into `count` parts along the batch."""
    if count == 1:
        return [data]
    batch = ops.shape(keras.tree.flatten(data)[0])[0]
    edges = [batch * part // count for part in range(count + 1)]
    return [
        keras.tree.map_structure(lambda x: x[start:stop], data)  # noqa: B023
        for start, stop in itertools.pairwise(edges)
    ]
