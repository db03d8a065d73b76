"""A keras.Model whose training step is exact on any number of devices."""

import itertools
from typing import Any, NamedTuple

import keras
from keras import ops
from keras.src.trainers.trainer import model_supports_jit
from keras.src.utils.tracking import no_automatic_dependency_tracking

from kseq.layers.cudnn import needs_cudnn
from kseq.models.auxiliary_losses import alignment_losses
from kseq.user_error import (
    BELOW_ONE,
    ArgumentError,
    check_integers,
    check_number,
    check_positive,
    check_weights,
)

if keras.backend.backend() == "tensorflow":  # the only one that trains
    from kseq.devices import has_gpu
    from kseq.models import exact_step
    from kseq.models.cross_entropy import cross_entropy
    from kseq.models.minimum_risk import check_minimum_risk
    from kseq.models.optimizer_update import nested_optimizers
    from kseq.models.step_function import StepFunction, TrainFunction
    from kseq.models.step_guard import StepGuard


class TokenLosses(NamedTuple):
    """One loss for each token or for each row, tensors of one shape.

    Args:
        loss: (...) float.
        weight: (...) float, 0 where there is no token; None counts all as 1.
        likelihood: (...) float, negative log-likelihood, for the metric
            `perplexity`; or None.
        right: (...) bool, for the metric `accuracy`; or None.
        risk: (...) float, for the metric `risk`; or None.
    """

    loss: Any
    weight: Any = None
    likelihood: Any = None
    right: Any = None
    risk: Any = None


@keras.saving.register_keras_serializable(package="kseq")
class ExactModel(keras.Model):
    """A functional model with an exact training step on any devices.

    Each replica sums the loss over its tokens; sums and gradients are added
    over micro-batches and replicas, and only then divided by the number of
    tokens in the global batch and clipped:

        loss = sum(weight * token_loss) / sum(weight)

    So the same global batch gives the same update on one device, on several,
    and in several micro-batches. Stock Keras averages per-replica means and
    clips gradients before summing them, which gives neither.

    Data are `(inputs, labels, sample_weight)`. The loss is the cross-entropy
    of labels (...) int under logits (..., V), with weights of the shape of
    the labels; a model with a loss of its own overrides `token_losses`.

    Training and `evaluate` report means over real tokens: `loss`,
    `perplexity` (of the labels, without smoothing) and `accuracy`; and
    means over steps: `tokens` and `padding`, the fraction of positions
    without one, of the labels or, where a row has one loss, of its
    `source_ids` or `source_mask`. Training adds `gradient_norm`, before
    clipping. `evaluate` leaves label smoothing out of its loss.

    If the loss or gradient of a step is not finite, the update is skipped and
    `fit` raises `DivergedError`, which names the first layer with such values.
    On a GPU it is raised up to ten steps later; these steps change nothing.
    With mixed_float16, the optimizer handles overflow. A step that runs out of
    memory raises `OutOfMemoryError`, an id out of range in the first batch
    `ArgumentError`.

    `steps_done` is the number of training steps since `compile`, including
    those whose update mixed_float16 skips. `training.Checkpoints` restores it;
    `keras.callbacks.BackupAndRestore` restores the number of updates.
    `seconds_waiting` is the time for which these steps waited for their batch.

    `copy.deepcopy(model)` copies all of it, `type(model).from_config(
    model.get_config())` all but the weights and what `compile` got.
    `keras.models.clone_model` makes a plain `Functional` of a subclass, without
    its loss and training step.

    Training needs the TensorFlow backend.

    Args:
        *args: see `keras.Model`, as all other arguments.
        dtype: dtype policy or its name.
        **kwargs: see `keras.Model`.

    Example:
        >>> class Tagger(ExactModel):
        ...     def token_losses(self, inputs, labels, outputs, *_):
        ...         return TokenLosses(
        ...             keras.ops.binary_crossentropy(labels, outputs)
        ...         )
        >>> inputs = keras.Input((4,))
        >>> model = Tagger(inputs, keras.layers.Dense(3, "sigmoid")(inputs))
        >>> model.compile(keras.optimizers.Adam(), clip_norm=1.0)
        >>> x, y = np.ones((8, 4)), np.ones((8, 3))
        >>> sorted(model.evaluate(x, y, verbose=0, return_dict=True))
        ['loss', 'padding', 'tokens']
    """

    uses_in_batch_negatives = (
        False  # whether losses depend on other rows of the batch
    )
    uses_softmax = True  # whether outputs are logits of exclusive classes
    guided_alignment = 0.0
    minimum_risk = 0.0

    def __init__(
        self, *args, dtype: str | keras.DTypePolicy | None = None, **kwargs
    ):
        super().__init__(*args, **kwargs)
        self.dtype_policy = keras.dtype_policies.get(dtype)

    def call(self, inputs, training=None, mask=None, with_attention=False):
        if with_attention:
            return self.logits_and_attention(inputs)
        return super().call(inputs, training=training, mask=mask)

    def loss_outputs(self, inputs, training: bool):
        """The inputs of `token_losses`, if they are more than the outputs."""
        options = {"with_attention": True} if self.is_guided(inputs) else {}
        return self(inputs, training=training, **options)

    @property
    def _num_labels(self) -> int | None:
        """How many labels there are, if the loss is the cross-entropy."""
        is_own = type(self).token_losses is not ExactModel.token_losses
        if is_own or len(self.outputs) != 1:
            return None
        return self.outputs[0].shape[-1]

    def is_guided(self, inputs) -> bool:
        """Whether the loss of a batch has a part of `guided_alignment`."""
        return self.guided_alignment > 0 and "alignment" in inputs

    def token_losses(
        self, inputs, labels, outputs, sample_weight, label_smoothing: float
    ) -> TokenLosses:
        """The losses of a batch; override it for a custom loss.

        The weighted losses are summed over the global batch, and divided by the
        sum of the weights. A loss with one number for each row, such as CTC,
        is spread evenly over the tokens of the row:

            loss + ctc[:, None] / maximum(sum(weight > 0, axis=1), 1)[:, None]

        The part of a batch on one device may have no rows, in the last batch.

        Args:
            inputs: inputs of the model.
            labels: from the data, or None.
            outputs: those of `loss_outputs`; logits (..., V) here, and with
                `guided_alignment` the attention (B, T, S).
            sample_weight: from the data, or None.
            label_smoothing: float, that of `compile`; 0 in `evaluate`.

        Returns:
            `TokenLosses`.
        """
        is_pair = isinstance(outputs, tuple)
        logits, weights = outputs if is_pair else (outputs, None)
        loss, likelihood, right = cross_entropy(labels, logits, label_smoothing)
        if self.is_guided(inputs):
            of_attention = alignment_losses(weights, inputs["alignment"])
            loss += self.guided_alignment * of_attention
        return TokenLosses(loss, sample_weight, likelihood, right)

    def compile(
        self,
        optimizer: str | keras.Optimizer,
        loss=None,
        *,
        label_smoothing: float = 0.0,
        clip_norm: float | None = None,
        accumulation_steps: int = 1,
        r_drop: float = 0.0,
        guided_alignment: float = 0.0,
        minimum_risk: float = 0.0,
        risk_samples: int = 5,
        run_eagerly: bool = False,
        auto_scale_loss: bool = True,
        loss_weights=None,
        metrics=None,
        weighted_metrics=None,
        jit_compile: bool | str = "auto",
        steps_per_execution: int = 1,
    ) -> None:
        """Configures training.

        Args:
            optimizer: a Keras optimizer without clipping and accumulation of
                its own, which would not be exact.
            loss: None; the loss is that of `token_losses`.
            label_smoothing: float in [0, 1), probability spread evenly over
                the vocabulary.
            clip_norm: float, maximum global norm of the gradient, or None.
            accumulation_steps: int, micro-batches that a batch is cut into
                to save memory. The update stays the same.
            r_drop: float, weight of R-Drop, for small data: a batch is
                predicted twice, with different dropout masks, and
                r_drop / 4 * (KL(p || q) + KL(q || p)) is added to the mean of
                both losses. A step takes twice as long.
            guided_alignment: float, weight of the loss of the attention: where
                inputs have `alignment` (B, T) int, see
                `kseq.data.TokenizedPairs`, the loss of a token is

                    cross-entropy - guided_alignment * log(attention)

                with the attention to its position. For models that attend to
                their source.
            minimum_risk: float in [0, 1], weight of the risk of answers that
                the model samples from its own predictions, at which the other
                losses have 1 - minimum_risk:

                    risk = 1 - GLEU(answer, labels)

                For models with `encode` and `decode_step` that have been
                trained without it. XLA compiles what follows the sampling.
            risk_samples: int, K, answers for each row; a step takes about
                2 K times as long.
            run_eagerly: bool, see `keras.Model.compile`.
            auto_scale_loss: bool, see `keras.Model.compile`.
            loss_weights: None; see `loss`.
            metrics: None; see the class for those that are reported.
            weighted_metrics: None; see `metrics`.
            jit_compile: bool, whether XLA compiles the training step; or
                "auto": if there is a GPU and all layers support it. XLA
                takes from seconds to a minute for each shape of a batch, so
                `evaluate` does not use it. On several devices, the
                computation of each device is compiled, but not the losses
                of a `DualEncoder`, which need all devices.
            steps_per_execution: 1. A GPU does not wait for the host between
                steps, see `StepFunction`.

        Raises:
            ValueError: if a value is out of range, if exactness would be
                lost, or if Keras is not on TensorFlow.

        Reference:
            R-Drop: Wu et al. 2021, arXiv:2106.14448. Guided alignment: Chen et
            al. 2016, arXiv:1607.01628; of Transformers: Garg et al. 2019,
            arXiv:1909.02074. Minimum risk: Shen et al. 2016, arXiv:1512.02433.
        """
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "Training needs the TensorFlow backend. "
                f"Received: {keras.backend.backend()}"
            )
        optimizer = keras.optimizers.get(optimizer)
        _check_exact(optimizer, label_smoothing, clip_norm, accumulation_steps)
        _check_r_drop(self, r_drop)
        _check_guided_alignment(self, guided_alignment)
        check_minimum_risk(self, minimum_risk, risk_samples)
        _check_unused(
            loss=loss,
            loss_weights=loss_weights,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            steps_per_execution=steps_per_execution != 1
            and steps_per_execution,
        )
        self._jit_compile_given = jit_compile
        if jit_compile == "auto":
            jit_compile = not run_eagerly and _chooses_xla(self)
        super().compile(
            optimizer=optimizer,
            run_eagerly=run_eagerly,
            auto_scale_loss=auto_scale_loss,
            jit_compile=jit_compile,
        )
        self.label_smoothing = label_smoothing
        self.clip_norm = clip_norm
        self.accumulation_steps = accumulation_steps
        self.r_drop = r_drop
        self.guided_alignment = guided_alignment
        self.minimum_risk = minimum_risk
        self.risk_samples = risk_samples
        self.steps_done = 0
        self.seconds_waiting = 0.0
        self.auto_scale_loss = auto_scale_loss
        self._create_metrics()
        self.optimizer.build(self.trainable_variables)
        # They are summed before they are clipped: Keras must not sum the sums.
        for each in nested_optimizers(self.optimizer):
            each._all_reduce_sum_gradients = list
        self.step_guard = StepGuard(self.distribute_strategy)
        self._training = self._testing = None  # step functions

    # Keras must not count them among the metrics of a subclass.
    @no_automatic_dependency_tracking
    def _create_metrics(self):
        names = ["loss", "accuracy", "tokens", "padding"]
        if self.minimum_risk:
            names.append("risk")
        self._progress = {name: keras.metrics.Mean(name=name) for name in names}
        self._progress["perplexity"] = _Perplexity(name="perplexity")
        self._gradient_norm = keras.metrics.Mean(name="gradient_norm")

    @property
    def metrics(self) -> list:
        own = [
            each for each in super().metrics if each is not self._loss_tracker
        ]
        if not self.compiled:
            return own
        return [*self._progress.values(), self._gradient_norm, *own]

    def get_compile_config(self) -> dict:
        config = super().get_compile_config()
        if not self.compiled:
            return config
        for name in (
            *("label_smoothing", "clip_norm", "accumulation_steps"),
            *("r_drop", "guided_alignment", "auto_scale_loss"),
            *("minimum_risk", "risk_samples"),
        ):
            config[name] = getattr(self, name)
        # As it was given: a saved model may be loaded beside another GPU.
        config["jit_compile"] = self._jit_compile_given
        return config

    def compile_from_config(self, config: dict):
        self.compile(**keras.saving.deserialize_keras_object(config))

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Nothing: a functional model is built, and `compile` builds the rest.

        Keras would read a batch in advance here, and fail under a strategy
        if the first one does not divide evenly, or on several machines.
        """

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self._training = self.train_function = TrainFunction(self)
        self.train_function.start()

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self._testing = self.test_function = StepFunction(
                self, self.test_step
            )
        self.test_function.start()

    def get_metrics_result(self) -> dict:
        # Keras asks after the last step of an epoch, before its callbacks.
        for function in (self._training, self._testing):
            if function is not None:
                function.end_epoch()
        return super().get_metrics_result()

    def train_step(self, data) -> dict:
        sums = exact_step.update(self, data)
        self._gradient_norm.update_state(sums["norm"], sums["norms"])
        logs = self._report(sums)
        return {**logs, "gradient_norm": self._gradient_norm.result()}

    def test_step(self, data) -> dict:
        return self._report(exact_step.global_sums(self, data))

    def loss_and_gradients(self, data) -> tuple:
        """The mean loss of a batch, (), and its gradients, as in training."""
        return exact_step.loss_and_gradients(self, data)

    def _report(self, sums):
        """Updates the metrics with sums over the global batch.

        Every replica gets the same sums: Keras adds the totals and the counts
        of the replicas, so their quotient is right.
        """
        weight = sums["weight"]
        positions = ops.maximum(sums["positions"], 1.0)
        updates = {
            "loss": (ops.divide_no_nan(sums["loss"], weight), weight),
            "tokens": (sums["real"], sums["steps"]),
            "padding": (1 - sums["real"] / positions, sums["positions"]),
        }
        of_tokens = {
            "accuracy": "right",
            "perplexity": "likelihood",
            "risk": "risk",
        }
        for name, key in of_tokens.items():
            if key in sums:
                mean = ops.divide_no_nan(sums[key], weight)
                updates[name] = (mean, weight)
        for name, update in updates.items():
            self._progress[name].update_state(*update)
        return {
            name: metric.result()
            for name, metric in self._progress.items()
            if name in updates
        }


class _Perplexity(keras.metrics.Mean):
    """exp of the mean of negative log-likelihoods."""

    def result(self):
        return ops.exp(super().result())


def _chooses_xla(model):
    """Whether XLA compiles the training step with `jit_compile="auto"`."""
    return has_gpu() and model_supports_jit(model) and not needs_cudnn(model)


def _check_exact(optimizer, label_smoothing, clip_norm, accumulation_steps):
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(
            "optimizer must be a Keras optimizer. Received: "
            f"optimizer={optimizer}"
        )
    check_number("label_smoothing", label_smoothing, 0, BELOW_ONE, "in [0, 1)")
    if clip_norm is not None:
        check_positive(clip_norm=clip_norm)
    check_integers(accumulation_steps=accumulation_steps)
    names = "clipnorm", "global_clipnorm", "clipvalue"
    names = (*names, "gradient_accumulation_steps")
    for each, name in itertools.product(nested_optimizers(optimizer), names):
        value = getattr(each, name, None)
        if value is not None:
            raise ValueError(
                f"{name} of an optimizer is not exact on several devices: use "
                "compile(clip_norm=..., accumulation_steps=...). "
                f"Received: {name}={value}"
            )


def _check_guided_alignment(model, weight):
    check_weights(guided_alignment=weight)
    attends = hasattr(model, "logits_and_attention")
    if weight and not (attends and getattr(model, "attention", True)):
        raise ArgumentError(
            "guided_alignment needs a model that attends to its source. "
            f"Received: guided_alignment={weight}, a {type(model).__name__}"
        )


def _check_r_drop(model, r_drop):
    check_weights(r_drop=r_drop)
    if r_drop and not model.uses_softmax:
        raise ArgumentError(
            "r_drop needs a model with logits of exclusive classes. "
            f"Received: {type(model).__name__}"
        )


def _check_unused(**given):
    for name, value in given.items():
        if value:
            raise ValueError(
                f"compile does not take {name}: a model has its loss in "
                "token_losses, reports the metrics of ExactModel, and runs "
                f"one step at a time. Received: {name}={value!r}"
            )
