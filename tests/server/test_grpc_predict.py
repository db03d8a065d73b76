"""What a gRPC client of TensorFlow Serving predicts, row by row."""

import random

import numpy as np
import pytest
import tensorflow as tf

from tests.server.grpc_client import predict
from tests.server.tensor_protos import (
    bools,
    content,
    floats,
    ints,
    longs,
    tensor,
    text,
)

NAN, INFINITY = float("nan"), float("inf")


HELLO = predict(text=text(b"hello"))
HELLO_ANSWER = {"text": text(b"HELLO"), "score": floats(5)}


def fails(code, *fragments):
    """An error with this code, and these texts in its details."""
    return code, fragments


INVALID = fails("INVALID_ARGUMENT")


def check(client, request, expected):
    if isinstance(expected, tuple):
        code, fragments = expected
        client.check_error(request, code, *fragments)
    else:
        outputs = client.send(request).outputs
        assert shown(outputs) == shown(expected)


def shown(outputs):
    """As text, in which NaN equals NaN."""
    return {name: str(tensor) for name, tensor in outputs.items()}


def shown_id(value):
    return " ".join(f"{value!r}".split())[:60].replace("\\", "")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (HELLO, HELLO_ANSWER),
        (predict("serving_default", text=text(b"hello")), HELLO_ANSWER),
        (
            predict("text", text=text("é".encode(), b"", "日本".encode())),
            {
                "text": text("É".encode(), b"", "日本".encode()),
                "score": floats(2, 0, 6),
            },
        ),
        # Outputs are in the field of their type, whatever the inputs were in.
        (predict("double", x=floats(1, 2.5)), {"y": floats(2, 5)}),
        (
            predict("double", x=content([1, 2.5], tf.float32)),
            {"y": floats(2, 5)},
        ),
        (
            predict("kinds", x=ints(3, -4)),
            {
                "positive": bools(True, False),
                "same": ints(3, -4),
                "half": floats(1.5, -2),
            },
        ),
        (
            predict("kinds", ["same"], x=content([3, -4], tf.int32)),
            {"same": ints(3, -4)},
        ),
        (predict("negate", x=bools(True, False)), {"y": bools(False, True)}),
        (
            predict("negate", x=content([True, False], tf.bool)),
            {"y": bools(False, True)},
        ),
        (
            predict(
                "rare_kinds",
                wide=tensor(tf.float64, [0.1, 1e300]),
                half=tensor(tf.float16, [0x3C00, 0]),  # the bits of 1, 0
                byte=tensor(tf.uint8, [0, 255]),
            ),
            {
                "wide": tensor(tf.float64, [0.2, 2e300]),
                "half": tensor(tf.float16, [0x4000, 0]),
                "byte": tensor(tf.uint8, [1, 0]),
            },
        ),
        (
            predict(
                "rare_kinds",
                wide=content([0.1], tf.float64),
                half=content([1], tf.float16),
                byte=content([255], tf.uint8),
            ),
            {
                "wide": tensor(tf.float64, [0.2]),
                "half": tensor(tf.float16, [0x4000]),
                "byte": tensor(tf.uint8, [0]),
            },
        ),
        # Several inputs, scalars, several dimensions, no rows.
        (
            predict(
                "several", a=floats(1, 2, 3, 4, shape=[2, 2]), b=longs(3, 0)
            ),
            {"sum": floats(6, 7)},
        ),
        (
            predict("several", a=content([[1, 2]], tf.float32), b=longs(2**62)),
            {"sum": floats(2.0**62)},
        ),
        (
            predict("several", a=floats(shape=[0, 2]), b=longs()),
            {"sum": floats()},
        ),
        (predict("text", text=text()), {"text": text(), "score": floats()}),
        (
            predict("double_scalar", x=floats(3.5, shape=[])),
            {"y": floats(7, shape=[])},
        ),
        (
            predict("double_any", x=floats(1, 2, shape=[1, 2, 1])),
            {"y": floats(2, 4, shape=[1, 2, 1])},
        ),
        (
            predict("with_count", text=text(b"a\0", b"b")),
            {"text": text(b"a\0", b"b"), "count": ints(2, shape=[])},
        ),
        (
            predict("with_three", text=text(b"a")),
            {"text": text(b"a"), "three": ints(0, 1, 2)},
        ),
        (
            predict("join", text=text(b"a", b"\xff")),
            {"text": text(b"a\xff", shape=[])},
        ),
        # One value fills a shape, the last one what is left of it.
        (
            predict("with_count", text=tf.make_tensor_proto("x", shape=[3])),
            {"text": text(b"x", b"x", b"x"), "count": ints(3, shape=[])},
        ),
        (
            predict("double", x=tf.make_tensor_proto(1.5, shape=[2])),
            {"y": floats(3, 3)},
        ),
        (
            predict("double", x=floats(1, 2, shape=[4])),
            {"y": floats(2, 4, 4, 4)},
        ),
        (predict("double", x=floats(shape=[2])), {"y": floats(0, 0)}),
        (
            predict("with_count", ["text"], text=text(shape=[2])),
            {"text": text(b"", b"")},
        ),
        # Bytes that are no UTF-8.
        (
            predict("to_bytes", text=text(b"\xfe", b"")),
            {"raw_bytes": text(b"\xff\xfe", b"\xff")},
        ),
        (
            predict("to_invalid_utf8", text=text(b"\xfe\0")),
            {"text": text(b"\xff\xfe\0")},
        ),
        # NaN and infinities.
        (
            predict("double", x=floats(NAN, INFINITY, -INFINITY)),
            {"y": floats(NAN, INFINITY, -INFINITY)},
        ),
        (
            predict("log", x=content([-1, 0], tf.float32)),
            {"y": floats(NAN, -INFINITY)},
        ),
        # Signatures of other methods are functions, too.
        (
            predict("classify", inputs=text(b"")),
            {
                "classes": text(b"", b"", shape=[1, 2]),
                "scores": floats(0, -0.0, shape=[1, 2]),
            },
        ),
        # Some of the outputs.
        (
            predict("kinds", ["half"], x=ints(3)),
            {"half": floats(1.5)},
        ),
        (
            predict("kinds", ["same", "half"], x=ints(3)),
            {"half": floats(1.5), "same": ints(3)},
        ),
        (
            predict("kinds", ["x"], x=ints(3)),
            fails(
                "INVALID_ARGUMENT",
                "output tensor alias not found in signature: x",
            ),
        ),
        (
            predict("kinds", ["half", "half"], x=ints(3)),
            fails("INVALID_ARGUMENT", "duplicate output tensor alias: half"),
        ),
        # Names of inputs.
        (
            predict("several", a=floats(1, 2, shape=[1, 2])),
            fails(
                "INVALID_ARGUMENT",
                "input size does not match signature: 1!=2",
                "Sent extra: {}. Missing but required: {b}.",
            ),
        ),
        (
            predict("double", x=floats(1), y=floats(2)),
            fails(
                "INVALID_ARGUMENT",
                "input size does not match signature: 2!=1",
                "Sent extra: {y}. Missing but required: {}.",
            ),
        ),
        (
            predict("double"),
            fails("INVALID_ARGUMENT", "Missing but required: {x}."),
        ),
        (predict("double", y=floats(1)), fails("INVALID_ARGUMENT", "x", "y")),
        # Names of signatures.
        (
            predict("x", text=text(b"a")),
            fails(
                "FAILED_PRECONDITION", 'Serving signature key "x" not found.'
            ),
        ),
        (
            predict("__saved_model_init_op"),
            fails("FAILED_PRECONDITION", '"__saved_model_init_op" not found.'),
        ),
        # Other types, other shapes.
        (predict("text", text=floats(1)), INVALID),
        (predict("double", x=text(b"1")), INVALID),
        (predict("double", x=tensor(tf.float64, [1])), INVALID),
        (predict("kinds", x=longs(1)), INVALID),
        (predict("negate", x=ints(1)), INVALID),
        (predict("double", x=floats(1, shape=[])), INVALID),
        (predict("double", x=floats(1, shape=[1, 1])), INVALID),
        (predict("double_scalar", x=floats(1)), INVALID),
        (predict("several", a=floats(1, shape=[1, 1]), b=longs(1)), INVALID),
        (
            predict("several", a=floats(1, shape=[2, 2]), b=longs(1, 2, 3)),
            INVALID,
        ),
        # What the function itself refuses.
        (predict("to_number", text=text(b"1.5")), {"number": floats(1.5)}),
        (
            predict("to_number", text=text(b"1.5", b"x")),
            fails("INVALID_ARGUMENT", "x"),
        ),
        (predict("to_number", text=text(b"a\nb", "é".encode())), INVALID),
        (predict("to_number", text=text(b"\xff")), INVALID),
    ],
    ids=shown_id,
)
def test_predict(grpc_client, request_, expected):
    check(grpc_client, request_, expected)


def draw_inputs(draws):
    """Signatures and inputs, as JSON has them."""
    rows = draws.randint(1, 4)

    def many(draw):
        return [draw() for _ in range(rows)]

    def number():
        return float(np.float32(draws.uniform(-10, 10)))

    def word():
        return "".join(draws.choices("aé日😀 \0\n", k=draws.randint(0, 9)))

    yield "", {"text": many(word)}
    yield "with_count", {"text": many(word)}
    yield "with_three", {"text": many(word)}
    yield "join", {"text": many(word)}
    yield "double", {"x": many(number)}
    yield "log", {"x": many(number)}
    yield "double_scalar", {"x": number()}
    yield "double_any", {"x": [many(number), many(number)]}
    yield "kinds", {"x": many(lambda: draws.randint(-(2**31), 2**31 - 1))}
    yield "negate", {"x": many(lambda: draws.random() < 0.5)}
    yield (
        "several",
        {
            "a": many(lambda: [number(), number()]),
            "b": many(lambda: draws.randint(-(2**63), 2**63 - 1)),
        },
    )


def test_answers_are_those_of_rest(grpc_client, store, open_client, seed):
    draws = random.Random(seed)
    rest = open_client(store)
    for signature, inputs in (x for _ in range(5) for x in draw_inputs(draws)):
        definition = store.find("many").signatures[signature or "text"]
        protos = {
            name: tf.make_tensor_proto(value, definition.inputs[name].dtype)
            for name, value in inputs.items()
        }
        outputs = grpc_client.send(predict(signature, **protos)).outputs
        body = {"signature_name": signature, "inputs": inputs}
        answer = rest.post("/v1/models/many:predict", json=body)
        expected = answer.json()["outputs"]
        if len(outputs) == 1:
            expected = dict.fromkeys(outputs, expected)
        assert set(outputs) == set(expected)
        for name, proto in outputs.items():
            found = tf.make_ndarray(proto)
            if found.dtype == object:
                found = np.vectorize(bytes.decode, otypes="O")(found)
            values = np.array(expected[name], found.dtype)
            np.testing.assert_array_equal(found, values, strict=True)
