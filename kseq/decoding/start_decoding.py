"""The step of a search and its first state."""

import tensorflow as tf

from kseq.decoding.ctc_prefix_scores import (
    CTCMemory,
    ctc_prefix_scores,
    no_prefixes,
)
from kseq.decoding.forced_prefix import ForcedPrefix
from kseq.decoding.next_log_probs import next_log_probs
from kseq.user_error import ArgumentError


def start_decoding(search, model, inputs, max_lengths, prefix, rows_per_item):
    """The step that every search repeats, and the state that it starts from.

    Args:
        search: has `constraints`, callables (log_probs (R, V), ids (R, T)) ->
            (R, V), and `ctc_weight`.
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, passed on unread.
        max_lengths: (B,) int32.
        prefix: (B, P) int32 or None, see `ForcedPrefix`.
        rows_per_item: int, hypotheses of an item; their rows are consecutive.

    Returns:
        A callable (last tokens (R,), all ids so far (R, T), state) ->
        (log-probabilities (R, V), state), R = B * rows_per_item, and the
        first state. The memory of the model is not in the state: it has one
        row per item and never changes.

    Raises:
        ValueError: if `prefix` and `max_lengths` have different numbers of
            rows, or the model has no CTC for `ctc_weight`.
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
    ctc = _ctc_memory(memory) if search.ctc_weight else None

    def without_memory(state):
        return {name: state[name] for name in state if name != "memory"}

    def step(token_ids, ids, state):
        state = {**state, **memory}
        prefixes = state.pop("ctc", None)
        logits, state = model.decode_step(token_ids, state)
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        state = without_memory(state)
        if ctc is not None:
            scores, prefixes = ctc_prefix_scores(ctc, prefixes, token_ids)
            log_probs += search.ctc_weight * (scores - log_probs)
            state["ctc"] = prefixes
        log_probs = next_log_probs(log_probs, ids, search.constraints, forced)
        return log_probs, state

    state = without_memory(encoded)
    if ctc is not None:
        state["ctc"] = no_prefixes(ctc)
    if rows_per_item > 1:
        state = tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, rows_per_item, axis=0), state
        )
    return step, state


def _ctc_memory(state):
    memory = state.get("memory")
    if not isinstance(memory, dict) or "ctc_log_probs" not in memory:
        raise ArgumentError(
            "ctc_weight needs a model that is trained with CTC."
        )
    return CTCMemory(memory["ctc_log_probs"], memory["mask"])
