"""How many steps a model has been trained for."""

import keras


def steps_done(model):
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
