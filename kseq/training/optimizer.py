"""Optimizers, moving averages of the weights, and the number of steps."""

import contextlib

import keras
from keras.optimizers.schedules import CosineDecay

from kseq.training.low_rank_optimizer import LowRankOptimizer
from kseq.training.range_test import RangeTest
from kseq.training.warmup_inverse_sqrt import WarmupInverseSqrt

_UNDECAYED = ["bias", "gamma", "beta", "scale"]  # in names of variables


def build_optimizer(config, **adam_options):
    """The optimizer of a recipe, with its schedule and moving averages.

    After `warmup_steps` of linear growth the learning rate decays with the
    inverse square root of the step, or as a cosine to 0 at the last of
    `steps`, or it stays constant; in a range test it grows at every step. With
    moving averages, whose momentum grows (`warm_up_averages`), validation
    scores these, and `best` saves them. With `lora`, it is a
    `LowRankOptimizer`: see `freeze`.

    Args:
        config: see `kseq.command_line.option_types.OptimizerOptions`.
        **adam_options: of `keras.optimizers.Adam`, if it is that optimizer.

    Returns:
        A `keras.optimizers.Optimizer`.

    Reference:
        Kingma and Ba 2015, arXiv:1412.6980; Chen et al. 2023, arXiv:2302.06675
        (Lion, which needs a learning rate three to ten times lower than Adam);
        Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5
        (Adafactor, whose learning rate, at most 1 / sqrt(step), is multiplied
        by the root mean square of each weight, which is small: it needs a
        higher one than Adam); Loshchilov and Hutter 2019, arXiv:1711.05101
        (`weight_decay`, not of biases and normalization).
    """
    options = {"learning_rate": _schedule(config)}
    if config.ema:
        options |= {"use_ema": True, "ema_momentum": config.ema}
    if config.weight_decay:
        options["weight_decay"] = config.weight_decay
    if config.optimizer == "lion":
        optimizer = keras.optimizers.Lion(**options)
    elif config.optimizer == "adafactor":
        optimizer = keras.optimizers.Adafactor(**options)
    else:
        optimizer = keras.optimizers.Adam(**options, **adam_options)
    if config.weight_decay:
        optimizer.exclude_from_weight_decay(var_names=_UNDECAYED)
    if config.ema:
        warm_up_averages(optimizer)
    if rank := getattr(config, "lora", 0):
        return LowRankOptimizer(optimizer, rank)
    return optimizer


def _schedule(config):
    peak, warmup = config.learning_rate, config.warmup_steps
    if config.schedule == "range_test":
        return RangeTest(peak, config.steps)
    if config.schedule == "inverse_sqrt":
        return WarmupInverseSqrt(peak, warmup)
    return CosineDecay(
        initial_learning_rate=0.0,
        warmup_target=peak,
        warmup_steps=warmup,
        decay_steps=max(1, config.steps - warmup),
        alpha=1.0 if config.schedule == "constant" else 0.0,  # least fraction
    )


def warm_up_averages(optimizer):
    """Makes moving averages of weights forget the first ones sooner.

        momentum of step t = min(ema_momentum, t / (9 + t)),    t = 1, 2, ...

    The averages start as the weights after the first step. With a constant
    momentum these weights keep a share of `ema_momentum ** (t - 1)`: after
    1,500 steps, 0.998 leaves 5 % of a network that had learned nothing. With
    the growing one it is 1e-6 after 20 steps, and the averages are about those
    of the last tenth of the steps until `ema_momentum` is reached.

    A Keras file of the model does not keep it: call this again after loading.

    Args:
        optimizer: a `keras.optimizers.Optimizer` with `use_ema=True`, to which
            this is done in place. One inside another is the one that averages.

    Raises:
        ValueError: if the optimizer has no moving averages.

    Example:
        >>> adam = keras.optimizers.Adam(use_ema=True, ema_momentum=0.999)
        >>> warm_up_averages(adam)

    Reference:
        The rule of `tf.train.ExponentialMovingAverage` with `num_updates`.
    """
    if not optimizer.use_ema:
        raise ValueError("The optimizer has no moving averages (use_ema=True).")
    update = optimizer._update_model_variables_moving_average
    momentum = optimizer.ema_momentum

    def update_warm(variables):
        step = keras.ops.cast(optimizer.iterations + 1, "float32")
        optimizer.ema_momentum = keras.ops.minimum(momentum, step / (9 + step))
        try:
            update(variables)
        finally:
            optimizer.ema_momentum = momentum

    optimizer._update_model_variables_moving_average = update_warm


@contextlib.contextmanager
def kept_weights(model):
    """Gives the model its trainable weights back at the end of a context.

    Args:
        model: `keras.Model`.
    """
    weights = [variable.numpy() for variable in model.trainable_variables]
    try:
        yield
    finally:
        for variable, weight in zip(
            model.trainable_variables, weights, strict=True
        ):
            variable.assign(weight)


@contextlib.contextmanager
def ema_weights(model):
    """Puts the optimizer's moving averages into the model within a context.

    The model stays unchanged if the optimizer does not have `use_ema=True`.

    Args:
        model: a compiled `keras.Model`, trained for at least one step.

    Example:
        >>> model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
        >>> model.compile(keras.optimizers.SGD(1.0, use_ema=True), "mse")
        >>> history = model.fit(np.ones((9, 1)), np.zeros(9), verbose=0)
        >>> with ema_weights(model):
        ...     print(model.get_weights()[0].shape)
        (1, 1)
    """
    with kept_weights(model):
        model.optimizer.finalize_variable_values(model.trainable_variables)
        yield


def global_step(model):
    """The number of training steps, also of those without an update.

    Checkpoints, metrics and samples are named after it. mixed_float16 skips an
    update whose gradients overflow, which the optimizer does not count.
    """
    updates = keras.ops.convert_to_numpy(model.optimizer.iterations)
    return max(int(updates), getattr(model, "steps_done", 0))
