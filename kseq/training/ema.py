"""Moving averages of the weights, temporarily in the model."""

import contextlib


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
