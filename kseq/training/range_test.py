"""A learning rate that grows exponentially, to find the rates that are good."""

import keras
from keras import ops

from kseq.user_error import check_positive

_DECADES = 5


@keras.saving.register_keras_serializable(package="kseq")
class RangeTest(keras.optimizers.schedules.LearningRateSchedule):
    """Exponential growth of the learning rate, over five decades.

        rate = highest * 10 ** (-5 * (1 - step / steps))

    where the first step is step 1. `fit` writes the loss of every step, each of
    which has a rate of its own.

    Args:
        highest: float, the rate of the last step.
        steps: int.

    Raises:
        ValueError: if an argument is not positive.

    Example:
        >>> schedule = RangeTest(highest=1.0, steps=100)
        >>> [round(float(schedule(step)), 6) for step in (19, 59, 99)]
        [0.0001, 0.01, 1.0]

    Reference:
        Smith 2017, arXiv:1506.01186, section 3.3, where it grows linearly.
    """

    def __init__(self, highest, steps):
        check_positive(highest=highest, steps=steps)
        self.highest = highest
        self.steps = steps

    def __call__(self, step):
        left = 1 - (ops.cast(step, "float32") + 1) / self.steps
        return self.highest * ops.power(10.0, -_DECADES * left)

    def get_config(self):
        return {"highest": self.highest, "steps": self.steps}
