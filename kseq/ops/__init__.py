"""Attention, recurrence and memory as pure functions of tensors."""

from kseq.ops.addressing import (
    content_weights,
    interpolate,
    read_slots,
    sharpen,
    shift_weights,
    write_slots,
)
from kseq.ops.attention import (
    additive_energies,
    attend,
    dot_energies,
    fold_hypotheses,
    masked_softmax,
    read_memory,
    scaled_dot_energies,
    unfold_hypotheses,
    weighted_sum,
)
from kseq.ops.blockwise_attention import (
    blockwise_attention,
    is_long,
    long_sequences,
)
from kseq.ops.features import (
    layer_norm,
    project,
    rotary_embedding,
    sinusoids,
    with_padded_batch,
)
from kseq.ops.masks import (
    causal_mask,
    distances,
    gather_steps,
    last_mask,
    masked_mean,
    packing_order,
    padding_mask,
    right_align,
    start_mask,
    window_mask,
)
from kseq.ops.recurrence import (
    gru_over_time,
    lstm_over_time,
    lstm_step,
    scan_time,
)
from kseq.ops.windowed_attention import windowed_attention

__all__ = [
    "additive_energies",
    "attend",
    "blockwise_attention",
    "causal_mask",
    "content_weights",
    "distances",
    "dot_energies",
    "fold_hypotheses",
    "gather_steps",
    "gru_over_time",
    "interpolate",
    "is_long",
    "last_mask",
    "layer_norm",
    "long_sequences",
    "lstm_over_time",
    "lstm_step",
    "masked_mean",
    "masked_softmax",
    "packing_order",
    "padding_mask",
    "project",
    "read_memory",
    "read_slots",
    "right_align",
    "rotary_embedding",
    "scaled_dot_energies",
    "scan_time",
    "sharpen",
    "shift_weights",
    "sinusoids",
    "start_mask",
    "unfold_hypotheses",
    "weighted_sum",
    "window_mask",
    "windowed_attention",
    "with_padded_batch",
    "write_slots",
]
