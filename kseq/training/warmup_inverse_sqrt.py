"""Linear warm-up and inverse square root decay of the learning rate."""

import keras
from keras import ops

from kseq.user_error import check_positive


@keras.saving.register_keras_serializable(package="kseq")
class WarmupInverseSqrt(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

        rate = peak * min(step / warmup_steps, sqrt(warmup_steps / step))

    where the first step is step 1.

    Args:
        peak: float, the rate reached at the end of the warm-up.
        warmup_steps: int.

    Raises:
        ValueError: if an argument is not positive.

    Example:
        >>> schedule = WarmupInverseSqrt(peak=0.002, warmup_steps=100)
        >>> [round(float(schedule(step)), 6) for step in (49, 99, 399)]
        [0.001, 0.002, 0.001]

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, equation 3.
    """

    def __init__(self, peak, warmup_steps):
        check_positive(peak=peak, warmup_steps=warmup_steps)
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1
        rising = step / self.warmup_steps
        falling = ops.sqrt(self.warmup_steps / step)
        return self.peak * ops.minimum(rising, falling)

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}
