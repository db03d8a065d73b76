"""Adam, its moving averages of the weights, and its number of steps."""

import contextlib

import keras

from kseq.training.warmup_inverse_sqrt import WarmupInverseSqrt


def adam(learning_rate, warmup_steps, *, ema=None, **options):
    """Adam with `WarmupInverseSqrt` and moving averages of the weights.

    Args:
        learning_rate: float, the peak.
        warmup_steps: int.
        ema: float, the momentum of the moving averages, with which validation
            scores and `best` is saved; None for no averages.
        **options: of `keras.optimizers.Adam`.

    Returns:
        A `keras.optimizers.Adam`.
    """
    if ema is not None:
        options |= {"use_ema": True, "ema_momentum": ema}
    schedule = WarmupInverseSqrt(learning_rate, warmup_steps)
    return keras.optimizers.Adam(schedule, **options)


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
    weights = [variable.numpy() for variable in model.trainable_variables]
    model.optimizer.finalize_variable_values(model.trainable_variables)
    try:
        yield
    finally:
        for variable, weight in zip(
            model.trainable_variables, weights, strict=True
        ):
            variable.assign(weight)


def global_step(model):
    """The number of training steps, also of those without an update.

    Checkpoints, metrics and samples are named after it. mixed_float16 skips an
    update whose gradients overflow, which the optimizer does not count.

    Args:
        model: `ExactModel`, or any compiled `keras.Model`.

    Returns:
        int.
    """
    updates = keras.ops.convert_to_numpy(model.optimizer.iterations)
    return max(int(updates), getattr(model, "steps_done", 0))
