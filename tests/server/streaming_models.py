"""SavedModels that answer letter by letter, made of plain functions."""

import threading

import tensorflow as tf

from kseq.serving.answer_stream import STREAM_NEXT
from kseq.serving.safe_graph import trust

_DRAWS = {"temperature": tf.float32, "top_p": tf.float32, "seed": tf.int64}


def save_streaming_models(root):
    """Saves `upper`, `chat`, `writer` and `whole` below a folder.

    `upper` gives its text in capital letters; `chat` the last turn, with what
    it was drawn by, and `writer` that of its prompt. `whole` does what `upper`
    does, and has no signatures of a stream. An answer ends at a ".", as at a
    length limit, if it has one.

    Returns:
        dict, name of the model -> its folder.
    """
    upper = _signatures({"text": (None,)}, _upper)
    signatures = {
        "upper": upper,
        "whole": {"serving_default": upper["serving_default"]},
        "chat": _signatures({"turns": (None, None)}, _last, draws=True),
        "writer": _signatures({"prompt": (None,)}, tf.identity, draws=True),
    }
    return _save(signatures, root)


def _save(signatures, root):
    folders = {}
    for name, functions in signatures.items():
        folders[name] = root / name
        module = tf.Module()
        module.functions = functions
        path = folders[name] / "1"
        tf.saved_model.save(module, str(path), signatures=functions)
        trust((path / "saved_model.pb").read_bytes())
    return folders


def save_beams(root):
    """Saves `beam` and `old beam`, which settle four letters at once.

    The old one is that of an earlier version.

    Returns:
        dict, name of the model -> its folder.
    """
    old = _signatures({"text": (None,)}, _upper, at_once=4)
    new = _signatures({"text": (None,)}, _upper, at_once=4, gives_ids=True)
    specs = [tf.TensorSpec((None, None), tf.int32, "ids")]
    new["stream_text"] = _named(_text_of, specs)
    return _save({"beam": new, "old beam": old}, root)


def _text_of(ids):
    return {"text": tf.strings.unicode_encode(ids, "UTF-8")}


def _upper(text):
    return tf.strings.upper(text, encoding="utf-8")


def _last(turns):
    lengths = tf.math.count_nonzero(turns != "", axis=1, dtype=tf.int32)
    return tf.gather(turns, tf.maximum(lengths - 1, 0), batch_dims=1)


def _signatures(inputs, answer, draws=False, at_once=1, gives_ids=False):
    raw = {
        name: tf.TensorSpec(shape, tf.string, name)
        for name, shape in inputs.items()
    }
    drawn = {
        name: tf.TensorSpec((None,), kind, name)
        for name, kind in _DRAWS.items()
    }

    def whole(*given):
        text = answer(given[0])
        if len(given) > 1:
            numbers = [tf.strings.as_string(x, 1) for x in given[1:3]]
            numbers += [tf.strings.as_string(given[3])]
            text = tf.strings.join([text, *numbers], "|")
        is_cut = tf.strings.regex_full_match(given[0][..., :1], "cut.*")
        return {
            "text": text,
            "score": tf.zeros(tf.shape(text)),
            "truncated": tf.reshape(is_cut, [-1])[: tf.size(text)],
        }

    def start(*given):
        found = whole(*given)
        return {
            "state_0": found["text"],
            "state_1": tf.zeros(tf.shape(found["text"]), tf.int32),
            "prompt_tokens": tf.strings.length(answer(given[0])),
            "truncated": found["truncated"],
        }

    def advance(text, place, more):
        place += more
        place += -place % at_once
        length = tf.strings.length(text, unit="UTF8_CHAR")
        ends_cut = tf.strings.regex_full_match(text, ".*[.]")
        last = length + tf.cast(~ends_cut, tf.int32)
        place = tf.minimum(place, last)
        done = place >= last
        count = tf.minimum(place, length)
        first = tf.zeros_like(count)
        shown = tf.strings.substr(text, first, count, unit="UTF8_CHAR")
        ids = tf.strings.unicode_decode(shown, "UTF-8").to_tensor()
        return {
            "state_0": text,
            "state_1": place,
            **({"ids": ids} if gives_ids else {}),
            "text": shown,
            "tokens": place,
            "done": done,
            "ended": done & ~ends_cut,
            "score": tf.zeros(tf.shape(text)),
        }

    state = [
        tf.TensorSpec((None,), tf.string, "state_0"),
        tf.TensorSpec((None,), tf.int32, "state_1"),
        tf.TensorSpec((None,), tf.int32, "more"),
    ]
    specs = [*raw.values()]
    functions = {"serving_default": _named(whole, specs)}
    if draws:
        specs += drawn.values()
        functions["sample"] = _named(whole, specs)
    return {
        **functions,
        "stream_start": _named(start, specs),
        "stream_next": _named(advance, state),
    }


def _named(function, specs):
    return tf.function(
        lambda *tensors: function(*tensors), input_signature=specs
    )


def fail_at(step, error, servable, monkeypatch):
    """Makes a step of a stream, the first of which is 0, raise an error."""
    run = servable.run

    def fail(signature, inputs):
        if signature == STREAM_NEXT and inputs["state_1"][0] == step:
            raise error
        return run(signature, inputs)

    monkeypatch.setattr(servable, "run", fail)


class Steps:
    """Lets the calls of `stream_next` of a model pass one by one."""

    def __init__(self, servable, monkeypatch):
        self.tickets = threading.Semaphore(0)
        self.begun = 0
        run = servable.run

        def wait(signature, inputs):
            if signature == STREAM_NEXT:
                self.begun += 1
                assert self.tickets.acquire(timeout=20)
            return run(signature, inputs)

        monkeypatch.setattr(servable, "run", wait)
