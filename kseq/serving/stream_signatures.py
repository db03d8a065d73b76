"""Signatures that give an answer while it is being found."""

import itertools
from typing import TYPE_CHECKING

import tensorflow as tf
from tensorflow.types.experimental import PolymorphicFunction

from kseq.control_tokens import END, PAD
from kseq.decoding.constraints import partial_stop_pattern
from kseq.decoding.sampling import SamplingParams, to_sampling
from kseq.decoding.start_decoding import make_items
from kseq.serving.answer_stream import (
    STATE,
    STREAM_NEXT,
    STREAM_START,
    STREAM_TEXT,
    state_of,
)
from kseq.serving.served_function import served_function

if TYPE_CHECKING:
    from kseq.serving.generator import Generator

_TENSOR = object()  # a leaf that is one
_INCOMPLETE = "\ufffd+$"  # a character of which some bytes are missing


def stream_signatures(
    generator: "Generator", draws: bool
) -> dict[str, PolymorphicFunction]:
    """The signatures of a generator whose names begin with `stream_`.

    `stream_start` takes what `serving_default` takes, or what `sample` takes.
    It gives the state of the search, tensors `state_0` and so on,
    `prompt_tokens` (B,) int32, the tokens of the source, START and END
    included, and `truncated` (B,) bool.

    `stream_next` takes this state and `more` (B,) int32. It continues the
    search until that many more tokens of an answer are settled, or all are
    done, and gives the next state and, for each input:

    - `text` (B,) string, the beginning of the answer as far as it is settled:
      every hypothesis that may still become the best one begins with it. A
      character is complete, and no part of a stop string is in it.
    - `tokens` (B,) int32, the tokens of it, END included.
    - `ids` (B, T) int32, these tokens, PAD after them.
    - `done` (B,) bool, whether the answer is complete: it is then that of the
      other signature.
    - `ended` (B,) bool, whether it ends with END, and not at the length limit.
    - `score` (B,) float32, that of the answer; valid where it is done.

    `stream_text` takes the first of these `ids`, (B, T) int32, and gives their
    `text` (B,) string, for an answer that is cut.

    Args:
        generator: `Generator`.
        draws: bool, whether the answers are those of `sample`.

    Returns:
        dict of three functions of tensors by keyword.
    """
    preprocessor, search = generator.preprocessor, generator.search_until_stop
    raw = preprocessor.input_signature
    if draws:
        search = to_sampling(search)
        raw = {**raw, **SamplingParams.input_signature()}
    structure = None  # of the state: its tensors are given by name

    def start(temperature=None, top_p=None, seed=None, **inputs):
        nonlocal structure
        source = preprocessor(**inputs)
        params = None
        if draws:
            params = SamplingParams.clipped(temperature, top_p, seed)
        items = make_items(
            *(source.inputs, generator.limits(source), None, params),
            likely_lengths=generator.likely_lengths(source),
        )
        state = search.steps(generator.model).start(items)
        structure = tf.nest.map_structure(
            lambda leaf: _TENSOR if tf.is_tensor(leaf) else leaf, state
        )
        return {
            **_named(state),
            "prompt_tokens": _num_tokens(source),
            "truncated": source.truncated,
        }

    def advance(more, **state):
        steps = search.steps(generator.model)
        found, memory = _of_structure(structure, state)
        found = steps.until_more_is_settled(found, memory, more)
        ids = tf.cast(steps.settled(found), tf.int32)
        done = steps.is_done(found)
        best = steps.hypotheses(*steps.answers(found))
        text = generator.texts(ids)
        settled = tf.strings.regex_replace(text, _INCOMPLETE, "")
        if generator.stop:
            settled = tf.strings.regex_replace(
                settled, partial_stop_pattern(generator.stop), ""
            )
        return {
            **_named((found, memory)),
            "text": tf.where(done, text, settled),
            "tokens": tf.math.count_nonzero(ids != PAD, 1, dtype=tf.int32),
            "ids": ids,
            "done": done,
            "ended": tf.reduce_any(ids == END, axis=1),
            "score": best.scores[:, 0],
        }

    def text_of(ids):
        text = generator.texts(ids)
        return {"text": tf.strings.regex_replace(text, _INCOMPLETE, "")}

    starting = served_function(start, raw)
    outputs = starting.get_concrete_function().structured_outputs
    inputs = {"more": tf.TensorSpec((None,), tf.int32, "more")}
    inputs |= {
        name: tf.TensorSpec(_any_length(spec.shape), spec.dtype, name)
        for name, spec in state_of(outputs).items()
    }
    return {
        STREAM_START: starting,
        STREAM_NEXT: served_function(advance, inputs),
        STREAM_TEXT: served_function(
            text_of, {"ids": tf.TensorSpec((None, None), tf.int32, "ids")}
        ),
    }


def _num_tokens(source):
    """Tokens of each source, (B,) int32; of features, their length."""
    ids = source.inputs.get("source_ids")
    if ids is None:
        return tf.cast(source.lengths, tf.int32)
    axes = list(range(1, ids.shape.rank))
    return tf.math.count_nonzero(ids != PAD, axis=axes, dtype=tf.int32)


def _named(state):
    leaves = filter(tf.is_tensor, tf.nest.flatten(state))
    return {f"{STATE}{number}": leaf for number, leaf in enumerate(leaves)}


def _of_structure(structure, tensors):
    """The nest of tensors by their names."""
    numbers = itertools.count()

    def leaf_of(leaf):
        return tensors[f"{STATE}{next(numbers)}"] if leaf is _TENSOR else leaf

    return tf.nest.map_structure(leaf_of, structure)


def _any_length(shape):
    """The shape for other inputs, and after any number of steps."""
    if not shape.rank:
        return shape
    return tf.TensorShape([None, *(size or None for size in shape[1:])])
