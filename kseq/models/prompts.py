"""The prompts of language models."""

from keras import layers, ops

from kseq.layers.layer_config import config_of
from kseq.ops import padding_mask, right_align
from kseq.ops.masks import causal_mask, window_mask


class Prompt:
    """Prompts that all end in the same column.

    Args:
        ids: (B, S) int32, PAD at the end.

    Attributes:
        context: (B, S - 1) int32, all tokens but the last ones.
        last: (B,) int32.
        mask: (B, S - 1) bool, True at real tokens.
        padding: (B,) int32, how many are not.
    """

    def __init__(self, ids):
        ids = right_align(ids)
        self.context, self.last = ids[:, :-1], ids[:, -1]
        self.mask = padding_mask(self.context)
        unreal = ops.logical_not(self.mask)
        self.padding = ops.sum(ops.cast(unreal, "int32"), axis=1)


def recent_mask(mask, window):
    """True at the last `window` positions up to each, (B, T) -> (B, T, T)."""
    time = ops.shape(mask)[1]
    near = window_mask(time, time, window - 1)
    near = ops.logical_and(near, causal_mask(time, time))
    return ops.logical_and(mask[:, None], near)


class PromptAndTarget(layers.Layer):
    """Prompts and targets as one sequence: ids, mask and padding before it.

    The last token of the prompt is read in place of START, with which targets
    begin; nothing is shifted. With a window, the mask (B, T, T) has the last
    `window` positions up to each.
    """

    def __init__(self, window: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.window = window

    def call(self, source_ids, target_ids):
        prompt = Prompt(source_ids)
        parts = [prompt.context, prompt.last[:, None], target_ids[:, 1:]]
        real = ops.ones_like(target_ids, dtype="bool")
        mask = ops.concatenate([prompt.mask, real], axis=1)
        if self.window is not None:
            mask = recent_mask(mask, self.window)
        return ops.concatenate(parts, axis=1), mask, prompt.padding

    def get_config(self) -> dict:
        return config_of(self, PromptAndTarget)


class LastSteps(layers.Layer):
    """The last T of (B, ..., D), for targets (B, T)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True  # there is none that is needed

    def compute_mask(self, x, previous=None):
        return None

    def call(self, x, target_ids):
        return x[:, ops.shape(x)[1] - ops.shape(target_ids)[1] :]

    def get_config(self) -> dict:
        return config_of(self, LastSteps)
