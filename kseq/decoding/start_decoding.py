"""The step of a search and its first state."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from kseq.decoding.best_tokens import best_tokens
from kseq.decoding.ctc_prefix_scores import (
    CTCMemory,
    ctc_prefix_scores,
    no_prefixes,
)
from kseq.decoding.forced_prefix import ForcedPrefix
from kseq.decoding.next_log_probs import next_log_probs
from kseq.decoding.top_k import top_k
from kseq.user_error import ArgumentError

_CONSTANT = ("memory", "constants")  # entries of a state that no step changes


class Memory(NamedTuple):
    """What no step of a search changes, with rows for each item.

    Args:
        model: the entry "memory" of the model's state, or None.
        ctc: `CTCMemory`, or None.
        prefix: (B, P) int32, see `ForcedPrefix`, or None.
        max_lengths: (B,) int32.
        draws: `Draws`, or None.
    """

    model: Any
    ctc: Any
    prefix: Any
    max_lengths: tf.Tensor
    draws: Any = None


def start_decoding(search, model, inputs, max_lengths, prefix, width=None):
    """The step that every search repeats, and what it starts from.

    Args:
        search: has `constraints`, callables (log_probs (R, V), ids (R, T)) ->
            (R, V), and `ctc_weight`.
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, passed on unread.
        max_lengths: (B,) int32.
        prefix: (B, P) int32 or None, see `ForcedPrefix`.
        width: int, how many of the most likely tokens are wanted; None for all.

    Returns:
        - a callable (last tokens (R,), all ids so far (R, T), state, memory) ->
          (log-probabilities (R, V), state), for R / B rows of each item; with a
          width, those of the most likely tokens (R, width), and these, in place
          of all log-probabilities;
        - the first state, with one row for each item;
        - the `Memory`.

    Raises:
        ValueError: if `prefix` and `max_lengths` have different numbers of
            rows, or the model has no CTC for `ctc_weight`.
    """
    if prefix is not None:
        prefix = ForcedPrefix(prefix).prefix
        if not prefix.shape[:1].is_compatible_with(max_lengths.shape):
            raise ValueError(
                "prefix must have one row per item. Received: "
                f"prefix.shape={prefix.shape}, "
                f"max_lengths.shape={max_lengths.shape}"
            )

    is_plain = not search.constraints and prefix is None
    is_plain &= not search.ctc_weight

    def step(token_ids, ids, state, memory):
        state = dict(state)
        if memory.model is not None:
            state["memory"] = memory.model
        if constants is not None:
            state["constants"] = constants
        prefixes = state.pop("ctc", None)
        with keras.StatelessScope(values):
            logits, state = model.decode_step(token_ids, state)
        logits = tf.cast(logits, tf.float32)
        state = _that_changes(state)
        if width is not None and is_plain:
            return best_tokens(logits, min(width, logits.shape[-1])), state
        log_probs = tf.nn.log_softmax(logits)
        if memory.ctc is not None:
            scores, prefixes = ctc_prefix_scores(
                memory.ctc, prefixes, token_ids
            )
            log_probs += search.ctc_weight * (scores - log_probs)
            state["ctc"] = prefixes
        forced = memory.prefix
        if forced is not None:
            forced = ForcedPrefix(forced)
        log_probs = next_log_probs(log_probs, ids, search.constraints, forced)
        if width is not None:
            return top_k(log_probs, min(width, log_probs.shape[-1])), state
        return log_probs, state

    # The loop reads no variable: it takes time, and see `until_done`.
    variables = getattr(model, "variables", ())
    values = [(each, tf.convert_to_tensor(each.value)) for each in variables]
    encoded = model.encode(inputs)
    ctc = _ctc_memory(encoded) if search.ctc_weight else None
    memory = Memory(encoded.get("memory"), ctc, prefix, max_lengths)
    constants = encoded.get("constants")
    state = _that_changes(encoded)
    if ctc is not None:
        state["ctc"] = no_prefixes(ctc)
    return step, state, memory


def items_may_leave(constraints):
    """Whether constraints know nothing of the items that rows belong to."""
    return all(getattr(each, "is_row_wise", False) for each in constraints)


def map_rows(function, state):
    """The state with a function applied to what has a row per hypothesis."""
    return {
        name: part
        if name in (*_CONSTANT, "shared")
        else tf.nest.map_structure(function, part)
        for name, part in state.items()
    }


def _that_changes(state):
    return {name: state[name] for name in state if name not in _CONSTANT}


def _ctc_memory(state):
    memory = state.get("memory")
    if not isinstance(memory, dict) or "ctc_log_probs" not in memory:
        raise ArgumentError(
            "ctc_weight needs a model that is trained with CTC."
        )
    return CTCMemory(memory["ctc_log_probs"], memory["mask"])
