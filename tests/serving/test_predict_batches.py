import itertools
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from kseq.serving.predict_batches import predict_batches
from kseq.serving.served_function import served_function
from kseq.user_error import ArgumentError, UserError


def upper(text):
    return {"text": tf.strings.upper(text)}


def test_inputs_are_answered_in_their_order():
    lines = [b"x" * n for n in (3, 1, 4, 1, 5, 9, 2, 6)]
    batches = []

    def length(text):
        batches.append(text.numpy().tolist())
        return {"length": tf.strings.length(text)}

    results = predict_batches(
        {"length": length}, "length", {"text": lines}, batch_size=3
    )
    assert [r["length"] for r in results] == [len(line) for line in lines]
    assert batches[0] == [lines[5], lines[7], lines[4]]


def test_answers_keep_the_order_of_the_sources():
    sources = [letter * (7 * i % 10) for i, letter in enumerate("abcdefghij")]
    rows = predict_batches(
        {"upper": upper}, "upper", {"text": sources}, batch_size=3
    )
    outputs = [row["text"].decode() for row in rows]
    assert outputs == [source.upper() for source in sources]


def test_any_sequence_is_a_column():
    """A `pandas.Series` finds rows by their labels, which may be others."""

    class Labelled(list):
        def __getitem__(self, label):
            raise KeyError(label)

    rows = predict_batches(
        {"upper": upper}, "upper", {"text": Labelled("ab")}, batch_size=2
    )
    assert [row["text"] for row in rows] == [b"A", b"B"]


def test_columns_stay_together():
    def joined(text, prefix):
        return {"text": tf.strings.join([prefix, text])}

    columns = {"text": ["a", "ccc", "bb"], "prefix": ["1", "2", "3"]}
    rows = predict_batches({"join": joined}, "join", columns, batch_size=2)
    assert [row["text"] for row in rows] == [b"1a", b"2ccc", b"3bb"]


def test_nothing_to_answer():
    assert predict_batches({"upper": upper}, "upper", {"text": []}, 32) == []


def test_progress():
    calls = []
    predict_batches(
        {"upper": upper},
        "upper",
        {"text": ["a"] * 5},
        batch_size=2,
        progress=calls.append,
    )
    assert calls == [2, 2, 1]


def sizes_of_batches(lengths, batch_size=None):
    """Of lines with these lengths, the batch of the longest first."""
    found = {}

    def record(text):
        sizes = tf.strings.length(text).numpy()
        found[sizes[0]] = len(sizes)
        return {"text": text}

    lines = ["x" * length for length in lengths]
    predict_batches({"copy": record}, "copy", {"text": lines}, batch_size)
    return [found[longest] for longest in sorted(found, reverse=True)]


def test_batches_of_long_inputs_are_smaller():
    lengths = [*range(1000, 1040), *range(200, 240), *range(1, 141)]
    assert sizes_of_batches(lengths) == [32, 32, 76, 80]
    assert sizes_of_batches([0] * 200)[0] == 72  # 128, then the others
    assert sizes_of_batches([10**6, 1, 2, 3], batch_size=3) == [3, 1]


def test_a_gpu_is_given_larger_batches(reported_gpu):
    lengths = [*[40_000] * 32, *[1000] * 131, *[1] * 1024]
    assert sizes_of_batches(lengths) == [32, 131, 1024]
    assert sizes_of_batches([10**6, 1, 2, 3], batch_size=3) == [3, 1]


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "OOM"),
        # A kernel that a GPU loads when it is first needed.
        tf.errors.InternalError(None, None, "CUDA_ERROR_OUT_OF_MEMORY"),
    ],
)
def test_a_batch_that_does_not_fit_into_memory_is_cut(caplog, error):
    """And so are those after it; in what order they are answered is hidden."""
    calls, lines = [], ["x" * length for length in (5, 9, 7, 8, 6, 4, 3, 2)]

    def limited(text):
        calls.append(len(text))
        if len(text) * len(text[0].numpy()) > 20:
            raise error
        return {"text": tf.strings.upper(text)}

    done = []
    rows = predict_batches(
        {"copy": limited}, "copy", {"text": lines}, 4, done.append
    )
    assert [row["text"].decode() for row in rows] == [
        line.upper() for line in lines
    ]
    # 4 of length 9 fail; 4 of 5 are not tried, since 18 is known to fit.
    assert calls == [4, 2, 2, 2, 2]
    assert done == [4, 4]
    [warning] = caplog.messages
    assert "A batch of 4 inputs does not fit" in warning


def test_one_input_that_does_not_fit_into_memory_is_an_error():
    def limited(text):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM")

    with pytest.raises(tf.errors.ResourceExhaustedError):
        predict_batches({"no": limited}, "no", {"text": ["a", "b"]}, 2)


def test_a_batch_that_fails_otherwise_is_not_cut():
    calls = []

    def failing(text):
        calls.append(len(text))
        raise tf.errors.InternalError(None, None, "CUDA_ERROR_ILLEGAL_ADDRESS")

    with pytest.raises(tf.errors.InternalError):
        predict_batches({"no": failing}, "no", {"text": ["a", "b"]}, 2)
    assert calls == [2]


def test_each_processor_has_a_batch(monkeypatch):
    """If an operation runs on one of them, as in the process of the tests."""
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    calls, all_three = itertools.count(), threading.Barrier(3, timeout=60)

    def meet(text):
        if next(calls) > 0:  # the first comes alone
            all_three.wait()
        return {"text": text}

    lines = ["line"] * 4
    assert len(predict_batches({"meet": meet}, "meet", {"text": lines}, 1)) == 4


def test_an_error_ends_it():
    answered = []

    def refuse(text):
        if b"2" in text.numpy():
            raise ValueError("not 2")
        time.sleep(0.01)
        answered.append(len(text))
        return {"text": text}

    lines = [str(number) for number in range(10)] * 10
    with pytest.raises(ValueError, match="not 2"):
        predict_batches({"refuse": refuse}, "refuse", {"text": lines}, 1)
    assert len(answered) < len(lines)


@pytest.mark.parametrize(
    ("columns", "received"),
    [
        ({"text": "a line"}, "text='a line'"),
        ({"text": b"a line"}, "text=b'a line'"),
        ({"text": ["a"], "prefix": ["b", "c"]}, r"prefix=\['b', 'c'\]"),
        ({"text": ["a", "b"], "prefix": []}, r"prefix=\[\]"),
        ({"text": None}, "text=None"),
        ({"text": 3}, "text=3"),
        ({"text": ["a"], "prefix": iter("b")}, "prefix=<str"),
    ],
)
def test_bad_columns(columns, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        predict_batches({"upper": upper}, "upper", columns, batch_size=2)


STRING, FLOAT = tf.string, tf.float32


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "kind"),
    [
        (STRING, (), ["a"], "a string"),
        (STRING, (), [], "a string"),
        (STRING, (), None, "a string"),
        (STRING, (), 3, "a string"),
        (STRING, (), np.array(["a"]), "a string"),
        (STRING, (None,), "a", "a list of strings"),
        (STRING, (None,), ["a", 3], "a list of strings"),
        (STRING, (None,), [["a"]], "a list of strings"),
        (STRING, (None,), None, "a list of strings"),
        (FLOAT, (), "a", "a number"),
        (FLOAT, (), [0.5], "a number"),
        (FLOAT, (None, 3), "a", "an array of 2 axes"),
        (FLOAT, (None, 3), [[0.5, 1.0, 2.0]], "an array of 2 axes"),
        (FLOAT, (None, 3), np.zeros(3), "an array of 2 axes"),
        (FLOAT, (None, 3), np.zeros((1, 1, 3)), "an array of 2 axes"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_values_of_another_kind(dtype, shape, value, kind, first):
    """TensorFlow calls a function that was loaded with parts of them."""
    columns = {"text": ["a"], "more": [value]}
    specs = {
        "text": tf.TensorSpec((None,), tf.string, "text"),
        "more": tf.TensorSpec((None, *shape), dtype, "more"),
    }
    names = ["more", "text"] if first else ["text", "more"]
    function = served_function(
        lambda **columns: columns, {name: specs[name] for name in names}
    )
    columns = {name: columns[name] for name in names}
    with pytest.raises(
        ArgumentError, match=f"of more must be {kind}. Received"
    ):
        predict_batches({"same": function}, "same", columns, batch_size=2)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5])
def test_a_batch_size_out_of_range(batch_size):
    with pytest.raises(ValueError, match=f"batch_size={batch_size}"):
        predict_batches({"upper": upper}, "upper", {"text": ["a"]}, batch_size)


def test_a_missing_signature_is_named():
    with pytest.raises(UserError, match="no signature score; it has upper"):
        predict_batches({"upper": upper}, "score", {"text": []}, 32)
