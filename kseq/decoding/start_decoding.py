"""What a search starts from, and the step that it repeats."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from kseq.decoding.constraints import ForcedPrefix
from kseq.decoding.ctc_prefix_scores import (
    CTCMemory,
    ctc_prefix_scores,
    empty_prefixes,
)
from kseq.decoding.loops import INTEGER
from kseq.decoding.next_tokens import next_log_probs, top_k, top_k_tokens
from kseq.decoding.phrases import (
    completions,
    different_phrases,
    of_phrases,
    phrase_memory,
    progress,
    with_next_tokens,
)
from kseq.user_error import ArgumentError

_CONSTANT = ("memory", "constants")  # entries of a state that no step changes


class Items(NamedTuple):
    """What a search answers, with a row for each item.

    Args:
        inputs: what `model.encode` takes, a nest of tensors (B, ...).
        max_lengths: (B,) int64.
        likely_lengths: (B,) int64, which few answers are longer than.
        prefix: (B, P) int64, see `ForcedPrefix`, or None.
        params: `SamplingParams`, or None.
        phrases: required ones, see `Phrases`, and the numbers of forbidden
            ones, see `different_phrases`; or None.
        following: (B, V) bool, see `ForcedPrefix`, or None.
    """

    inputs: Any
    max_lengths: tf.Tensor
    likely_lengths: tf.Tensor
    prefix: Any
    params: Any
    phrases: Any = None
    following: Any = None


class Memory(NamedTuple):
    """What no step of a search changes, with rows for each item.

    Args:
        model: the entry "memory" of the model's state, or None.
        ctc: `CTCMemory`, or None.
        items: `Items` without their inputs and phrases.
        phrases: `PhraseMemory`, or None.
    """

    model: Any
    ctc: Any
    items: Items
    phrases: Any = None


def make_items(
    inputs,
    max_lengths,
    prefix,
    params=None,
    phrases=None,
    likely_lengths=None,
):
    """The `Items` of a search.

    `likely_lengths` are `max_lengths` by default.

    Raises:
        ValueError: if `max_lengths` are not one integer for each item, or if
            `prefix` and `max_lengths` have different numbers of rows.
    """
    max_lengths = _lengths(max_lengths, inputs)
    if likely_lengths is None:
        likely_lengths = max_lengths
    likely_lengths = tf.minimum(tf.cast(likely_lengths, INTEGER), max_lengths)
    following = None
    if prefix is not None:
        if not isinstance(prefix, ForcedPrefix):
            prefix = ForcedPrefix(prefix)
        prefix, following = prefix.prefix, prefix.following
        if not prefix.shape[:1].is_compatible_with(max_lengths.shape):
            raise ValueError(
                "prefix must have one row per item. Received: "
                f"prefix.shape={prefix.shape}, "
                f"max_lengths.shape={max_lengths.shape}"
            )
    if phrases is not None:
        required = tf.cast(tf.convert_to_tensor(phrases.required), INTEGER)
        if required.shape.rank == 3:  # one way each
            required = required[:, :, None]
        phrases = required, different_phrases(phrases.forbidden)[1]
    return Items(
        *(inputs, max_lengths, likely_lengths),
        *(prefix, params, phrases, following),
    )


def start_decoding(search, model, has_prefix, width=None, phrases=None):
    """The first state of items, and the step that every search repeats.

    Neither reads a variable, which takes time and lets TensorFlow run nothing
    at the same time: the values of all are read here.

    Args:
        search: has `constraints`, callables (log_probs (R, V), ids (R, T)) ->
            (R, V), and `ctc_weight`.
        model: has `encode` and `decode_step`, and may have
            `decoding_constants`.
        has_prefix: bool, whether the items have prefixes.
        width: int, how many of the most likely tokens are wanted; None for all.
        phrases: `Phrases` of the items, or None; their next tokens are then
            among those that are wanted.

    Returns:
        - a callable `Items` -> the first state, with one row for each item,
          and the `Memory`;
        - a callable (last tokens (R,), all ids so far (R, T), both int64,
          state, memory) ->
          (log-probabilities (R, V), state), for R / B rows of each item; with a
          width, those of the most likely tokens (R, width), and these, in place
          of all log-probabilities.

    Raises:
        ValueError: if the model has no CTC for `ctc_weight`, or no attention
            for `coverage_penalty`. The callables raise it if `encode` or
            `decode_step` returns something else than a search can read.
    """
    is_plain = not search.constraints and not has_prefix
    is_plain &= not search.ctc_weight and phrases is None
    covers = bool(getattr(search, "coverage_penalty", 0.0))
    if covers and not attends(model):
        raise ArgumentError(
            "coverage_penalty needs a model with attention to its source."
        )

    variables = getattr(model, "variables", ())
    values = [(each, tf.convert_to_tensor(each.value)) for each in variables]
    constants = {}
    if hasattr(model, "decoding_constants"):
        constants = {"constants": model.decoding_constants()}

    if phrases is not None:
        texts, _ = different_phrases(phrases.forbidden)
        found = completions(texts, phrases.surfaces)

    def start(items):
        with keras.StatelessScope(values):
            encoded = model.encode(items.inputs)
        _check_state("encode", encoded)
        ctc = _ctc_memory(encoded) if search.ctc_weight else None
        own = None
        if phrases is not None:
            own = phrase_memory(*items.phrases, texts)
        state = _changing_state(encoded)
        if ctc is not None:
            state["ctc"] = empty_prefixes(ctc)
        if covers:
            mask = source_mask(encoded.get("memory"))
            state["coverage"] = tf.cast(tf.zeros_like(mask), tf.float32)
            state.pop("attention", None)  # of each step, from here on
        items = items._replace(inputs=None, phrases=None)
        return state, Memory(encoded.get("memory"), ctc, items, own)

    def step(token_ids, ids, state, memory):
        state = {**state, **constants}
        if memory.model is not None:
            state["memory"] = memory.model
        prefixes = state.pop("ctc", None)
        if covers:
            state["attention"] = coverage = state.pop("coverage")
        with keras.StatelessScope(values):
            tokens = tf.cast(token_ids, tf.int32)
            returned = model.decode_step(tokens, state)
        logits, state = _logits_and_state(returned, token_ids.shape[0])
        logits = tf.cast(logits, tf.float32)
        state = _changing_state(state)
        if covers:
            weights = state.pop("attention", coverage)
            if weights is coverage:
                raise ArgumentError(
                    "coverage_penalty needs a model whose decode_step replaces "
                    'state["attention"] by its attention weights.'
                )
            state["coverage"] = coverage + weights
        if width is not None and is_plain:
            return top_k_tokens(logits, min(width, logits.shape[-1])), state
        log_probs = tf.nn.log_softmax(logits)
        if memory.ctc is not None:
            scores, prefixes = ctc_prefix_scores(
                memory.ctc, prefixes, token_ids
            )
            log_probs += search.ctc_weight * (scores - log_probs)
            state["ctc"] = prefixes
        forced = memory.items.prefix
        if forced is not None:
            forced = ForcedPrefix(forced, memory.items.following)
        constraints = search.constraints
        if phrases is not None:
            required, surfaces = memory.phrases.required, phrases.surfaces
            met, following = progress(required, ids, surfaces)
            limit = of_phrases(met, memory.phrases, found, surfaces)
            constraints = (*constraints, limit)
        log_probs = next_log_probs(log_probs, ids, constraints, forced)
        if width is not None:
            best = top_k(log_probs, min(width, log_probs.shape[-1]))
            if phrases is not None:
                best = with_next_tokens(best, log_probs, following, surfaces)
            return best, state
        return log_probs, state

    return start, step


def source_mask(memory):
    """(B, S) bool, True at real positions of what a model attends to.

    Args:
        memory: the entry "memory" of the model's state.

    Raises:
        ValueError: if it has no mask.
    """
    if not isinstance(memory, dict) or "mask" not in memory:
        raise ArgumentError(
            "coverage_penalty needs a model whose encode gives the mask of its "
            'source, (B, S), as state["memory"]["mask"].'
        )
    mask = memory["mask"]  # of turns it is (B, N, W)
    shape = tf.shape(mask)
    return tf.reshape(mask, (shape[0], tf.reduce_prod(shape[1:])))


def are_row_wise(constraints):
    """Whether constraints do not mind which items are in their batch."""
    return all(getattr(each, "is_row_wise", False) for each in constraints)


def map_rows(function, state):
    """The state with a function applied to what has a row per hypothesis."""
    return {
        name: part
        if name in (*_CONSTANT, "shared")
        else tf.nest.map_structure(function, part)
        for name, part in state.items()
    }


def attends(model: Any) -> bool:
    """Whether a model has attention to its source, and gives its weights."""
    has_weights = hasattr(model, "attention_weights")
    # A recurrent model may have been built without attention.
    return has_weights and getattr(model, "attention", True) is not None


def _check_state(method, state):
    if not isinstance(state, dict):
        raise ArgumentError(
            f"{method} of a model must return its state as a dict. "
            f"Received: {type(state).__name__}"
        )
    for name, part in _changing_state(state).items():
        for leaf in tf.nest.flatten(part):
            if not tf.is_tensor(leaf) or leaf.shape.rank == 0:
                raise ArgumentError(
                    "The state of a model must have tensors whose first axis "
                    f'is the batch. Received from {method}: state["{name}"] '
                    f"with {leaf!r}"
                )


def _lengths(max_lengths, inputs):
    """The length limits, (B,) int64, one for each row of the inputs."""
    if not tf.is_tensor(max_lengths):
        max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    shape, dtype = max_lengths.shape, max_lengths.dtype
    leaves = tf.nest.flatten(inputs)
    shapes = [tf.TensorShape(getattr(leaf, "shape", ())) for leaf in leaves]
    rows = [each[:1] for each in shapes if each.rank]
    fits = not rows or any(map(shape.is_compatible_with, rows))
    is_one_each = shape.rank == 1 and fits
    if not is_one_each or not dtype.is_integer:
        raise ArgumentError(
            "max_lengths must be (B,) int, one limit for each row of the "
            f"inputs. Received: {dtype.name} {shape}, and inputs "
            f"{', '.join(map(str, shapes))}"
        )
    return tf.cast(max_lengths, INTEGER)


def _logits_and_state(returned, num_rows):
    expected = (
        "decode_step of a model must return logits (R, V), for R tokens and a "
        "V that is known, and the state."
    )
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise ArgumentError(f"{expected} Received: {type(returned).__name__}")
    logits, state = returned
    shape = tf.TensorShape(logits.shape)
    is_known = shape.rank == 2 and shape[-1] is not None
    if not is_known or not shape[:1].is_compatible_with([num_rows]):
        raise ArgumentError(
            f"{expected} Received: logits {shape} for {num_rows} tokens"
        )
    _check_state("decode_step", state)
    return logits, state


def _changing_state(state):
    return {name: state[name] for name in state if name not in _CONSTANT}


def _ctc_memory(state):
    memory = state.get("memory")
    if not isinstance(memory, dict) or "ctc_log_probs" not in memory:
        raise ArgumentError(
            "ctc_weight needs a model that is trained with CTC."
        )
    return CTCMemory(memory["ctc_log_probs"], memory["mask"])
