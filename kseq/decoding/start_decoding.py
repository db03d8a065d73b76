"""The step of a search and its first state."""

import tensorflow as tf

from kseq.decoding.forced_prefix import ForcedPrefix
from kseq.decoding.next_log_probs import next_log_probs


def start_decoding(
    model, inputs, max_lengths, constraints, prefix, rows_per_item
):
    """The step that every search repeats, and the state that it starts from.

    Args:
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, passed on unread.
        max_lengths: (B,) int32.
        constraints: callables (log_probs (R, V), ids (R, T)) -> (R, V).
        prefix: (B, P) int32 or None, see `ForcedPrefix`.
        rows_per_item: int, hypotheses of an item; their rows are consecutive.

    Returns:
        A callable (last tokens (R,), all ids so far (R, T), state) ->
        (log-probabilities (R, V), state), R = B * rows_per_item, and the
        first state. The memory of the model is not in the state: it has one
        row per item and never changes.

    Raises:
        ValueError: if `prefix` and `max_lengths` have different numbers of
            rows.
    """
    forced = None
    if prefix is not None:
        forced = ForcedPrefix(prefix)
        shape = forced.prefix.shape
        if not shape[:1].is_compatible_with(max_lengths.shape):
            raise ValueError(
                "prefix must have one row per item. Received: "
                f"prefix.shape={shape}, max_lengths.shape={max_lengths.shape}"
            )
    encoded = model.encode(inputs)
    memory = {name: encoded[name] for name in encoded if name == "memory"}

    def without_memory(state):
        return {name: state[name] for name in state if name != "memory"}

    def step(token_ids, ids, state):
        logits, state = model.decode_step(token_ids, {**state, **memory})
        log_probs = next_log_probs(logits, ids, constraints, forced)
        return log_probs, without_memory(state)

    state = without_memory(encoded)
    if rows_per_item > 1:
        state = tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, rows_per_item, axis=0), state
        )
    return step, state
