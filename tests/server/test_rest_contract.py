"""What a client of TensorFlow Serving sends and gets, row by row."""

import base64
import gzip
import json
import random
import sys
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from kseq.server import ModelStore

MANY = "/v1/models/many"
PREDICT = f"{MANY}:predict"
CLASSIFY = f"{MANY}:classify"
FILMS = "/v1/models/my%20films"
BODY_LIMIT = 2**20
NAN, INFINITY = float("nan"), float("inf")

HELLO = {"instances": ["hello"]}
HELLO_ANSWER = {"predictions": [{"text": "HELLO", "score": 5.0}]}
NO_LIST = "Excepting 'instances' to be an list/array"
ONE = {"predictions": [{"version": 1, "again": 1}]}


def fails(status, fragment=""):
    """An answer with this status, and this text in its error."""
    return status, fragment


@pytest.fixture(scope="module")
def store(models):
    labels = {("many", "stable"): 1, ("many", "not new"): 1}
    store = ModelStore(models, labels=labels)
    store.poll()
    yield store
    store.close()


@pytest.fixture
def client(store, open_client):
    return open_client(store, body_limit=BODY_LIMIT)


def send(client, method, path, body=b"", **options):
    """A response, of which all that holds for every answer is checked."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.request(method, path, content=content, **options)
    assert "access-control-allow-origin" not in answer.headers
    if path.lower().startswith("/v1/"):
        assert answer.headers["content-type"] == "application/json"
        parsed = json.loads(answer.content.decode("utf-8"))
        assert ("error" in parsed) == (answer.status_code != 200)
        assert "error" not in parsed or list(parsed) == ["error"]
    return answer


def same(one, other):
    """Equal values of equal types, floats as float32; NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            same(one[key], other[key]) for key in one
        )
    if isinstance(one, float):
        one, other = np.float32(one), np.float32(other)
    return one == other or (one != one and other != other)


def check(answer, expected):
    if not isinstance(expected, tuple):
        assert answer.status_code == 200, answer.text
        assert same(answer.json(), expected), answer.text
        return
    status, fragment = expected
    statuses = status if isinstance(status, set) else {status}
    assert answer.status_code in statuses, answer.text
    assert fragment in answer.json().get("error", "")


def b64(data):
    return {"b64": base64.b64encode(data).decode()}


def in_row(signature, *instances):
    return {"signature_name": signature, "instances": list(instances)}


def in_column(signature, inputs):
    return {"signature_name": signature, "inputs": inputs}


def malformed(method, path):
    return (method, path, fails(400, f"Malformed request: {method} {path}"))


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", PREDICT, HELLO_ANSWER),
        ("POST", f"{MANY}/versions/2:predict", HELLO_ANSWER),
        ("POST", f"{MANY}/versions/1:predict", ONE),
        ("POST", f"{MANY}/labels/stable:predict", ONE),
        ("POST", f"{MANY}/labels/not%20new:predict", ONE),
        ("POST", "/V1/Models/many/VERSIONS/1:Predict", ONE),
        ("POST", "/v1/MODELS/many/Labels/stable:PREDICT", ONE),
        ("POST", "/v1/models/m%61n%79:predict", HELLO_ANSWER),
        # Names, unlike the words of a route, have a case.
        ("POST", "/v1/models/MANY:predict", fails(404, "Latest(MANY)")),
        (
            "POST",
            "/v1/models/other:predict",
            fails(404, "Servable not found for request: Latest(other)"),
        ),
        (
            "POST",
            f"{MANY}/versions/99:predict",
            fails(404, "Servable not found for request: Specific(many, 99)"),
        ),
        (
            "POST",
            f"{MANY}/labels/other:predict",
            fails(400, "Unrecognized servable version label"),
        ),
        (
            "POST",
            f"{MANY}/versions/{2**63 - 1}:predict",
            fails(404, f"Specific(many, {2**63 - 1})"),
        ),
        (
            "GET",
            f"{MANY}/versions/{2**63}",
            fails(400, f"Failed to convert version: {2**63} to numeric."),
        ),
        ("POST", f"{MANY}/versions/0002:predict", HELLO_ANSWER),
        ("POST", f"{MANY}/versions/{9**99}:predict", fails({400, 404})),
        ("GET", f"{MANY}/versions/{9**99}", fails({400, 404})),
        # OpenAI's; an error in TensorFlow Serving. They have no truncated.
        ("GET", "/v1/models", {"object": "list", "data": []}),
        malformed("GET", "/v1/"),
        malformed("GET", "/v1/nothing"),
        malformed("GET", "/v1/models/"),
        malformed("GET", PREDICT),
        malformed("GET", f"{MANY}/versions/one"),
        malformed("GET", f"{MANY}/versions/-1"),
        malformed("GET", f"{MANY}/metadata/more"),
        malformed("GET", f"{MANY}/"),
        malformed("POST", MANY),
        malformed("POST", f"{MANY}/metadata"),
        malformed("POST", f"{MANY}:generate"),
        malformed("POST", f"{MANY}/predict"),
        malformed("POST", f"{MANY}/versions/one:predict"),
        malformed("POST", f"{MANY}/versions/1/labels/stable:predict"),
        malformed("PUT", PREDICT),
        malformed("PATCH", PREDICT),
        malformed("OPTIONS", PREDICT),
        malformed("DELETE", MANY),
    ],
)
def test_routes(client, method, path, expected):
    body = b"" if method == "GET" else HELLO
    check(send(client, method, path, body), expected)


@pytest.mark.parametrize(
    "path", ["/nothing", "/v1", "/v2/models/many", "/models/many"]
)
def test_not_found_outside_of_v1(client, path):
    assert send(client, "GET", path).status_code == 404


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Row form, one input: plain values, or objects with its name.
        (HELLO, HELLO_ANSWER),
        ({"instances": [{"text": "hello"}]}, HELLO_ANSWER),
        (in_row("serving_default", "hello"), HELLO_ANSWER),
        (in_row("", "hello"), HELLO_ANSWER),
        ({**HELLO, "more": [1]}, HELLO_ANSWER),
        (
            in_row("text", "é", "", "日本"),
            {
                "predictions": [
                    {"text": "É", "score": 2.0},
                    {"text": "", "score": 0.0},
                    {"text": "日本", "score": 6.0},
                ]
            },
        ),
        # Bytes.
        ({"instances": [b64(b"hello")]}, HELLO_ANSWER),
        ({"instances": [{"text": b64(b"hello")}]}, HELLO_ANSWER),
        (
            {"inputs": {"text": [b64(b"hello")]}},
            {"outputs": {"text": ["HELLO"], "score": [5.0]}},
        ),
        (
            in_row("to_bytes", "a", b64(b"\xfe")),
            {"predictions": [b64(b"\xffa"), b64(b"\xff\xfe")]},
        ),
        (
            in_column("to_bytes", ["a"]),
            {"outputs": [b64(b"\xffa")]},
        ),
        # Several inputs: objects whose keys are the input names, exactly.
        (
            in_row("several", {"a": [1, 2], "b": 3}, {"b": 0, "a": [-1, 0.5]}),
            {"predictions": [6.0, -0.5]},
        ),
        (in_row("several", {"a": [1, 2]}), fails(400)),
        (in_row("several", {"a": [1, 2], "b": 3, "c": 4}), fails(400)),
        (in_row("several", [1, 2]), fails(400)),
        (in_row("several", 1), fails(400)),
        (in_row("text", {"text": "a", "more": "b"}), fails(400)),
        (in_row("text", {"other": "a"}), fails(400)),
        (in_row("text", {}), fails(400)),
        (in_row("text", "a", {"text": "b"}), fails(400)),
        (in_row("text", {"text": "b"}, "a"), fails(400)),
        # Column form: further names are ignored, missing ones are not.
        (
            {"inputs": ["hello", "a"]},
            {"outputs": {"text": ["HELLO", "A"], "score": [5.0, 1.0]}},
        ),
        (
            {"inputs": {"text": ["hello"]}},
            {"outputs": {"text": ["HELLO"], "score": [5.0]}},
        ),
        (
            {"inputs": {"text": ["hello"], "more": 1}},
            {"outputs": {"text": ["HELLO"], "score": [5.0]}},
        ),
        (
            in_column("several", {"a": [[1, 2], [3, 4]], "b": [3, 0]}),
            {"outputs": [6.0, 7.0]},
        ),
        (
            in_column("several", {"a": [[1, 2]], "b": [3], "c": "more"}),
            {"outputs": [6.0]},
        ),
        (in_column("double_scalar", 3), {"outputs": 6.0}),
        (
            in_row("double_any", [[1, 2]], [[3, 4]]),
            {"predictions": [[[2.0, 4.0]], [[6.0, 8.0]]]},
        ),
        (in_column("double_any", 3), {"outputs": 6.0}),
        (in_column("double_scalar", {"x": 3.5}), {"outputs": 7.0}),
        (in_column("several", {"a": [[1, 2]]}), fails(400, "b")),
        (in_column("several", [[1, 2]]), fails(400)),
        (in_column("several", {"a": [[1, 2]] * 2, "b": [3] * 3}), fails(400)),
        (in_column("text", {"other": ["a"]}), fails(400, "text")),
        (in_column("text", {}), fails(400, "text")),
        # One output is a bare list, several are objects with their names.
        (in_row("double", 1, 2.5), {"predictions": [2.0, 5.0]}),
        (in_column("double", [1, 2.5]), {"outputs": [2.0, 5.0]}),
        (
            in_row("kinds", 3, -4),
            {
                "predictions": [
                    {"positive": True, "same": 3, "half": 1.5},
                    {"positive": False, "same": -4, "half": -2.0},
                ]
            },
        ),
        (
            in_column("kinds", [3, -4]),
            {
                "outputs": {
                    "positive": [True, False],
                    "same": [3, -4],
                    "half": [1.5, -2.0],
                }
            },
        ),
        (
            in_column("with_count", ["a\0"]),
            {"outputs": {"text": ["a\0"], "count": 1}},
        ),
        # The row form needs every output to have the batch first.
        (in_row("with_three", "a"), fails(400, "has inconsistent batch size")),
        (
            in_column("with_three", ["a"]),
            {"outputs": {"text": ["a"], "three": [0, 1, 2]}},
        ),
        (in_row("with_count", "a", "b"), fails(400, "Tensor name: count has")),
        (
            in_column("with_count", ["a", "b"]),
            {"outputs": {"text": ["a", "b"], "count": 2}},
        ),
        # Signatures of other methods are functions, too.
        (
            in_row("classify", b64(tf.train.Example().SerializeToString())),
            {"predictions": [{"classes": ["", ""], "scores": [0.0, 0.0]}]},
        ),
        # Keys.
        ({}, fails(400, "Missing 'inputs' or 'instances' key")),
        ({"text": 1}, fails(400, "Missing 'inputs' or 'instances' key")),
        (
            {"instances": ["a"], "inputs": ["a"]},
            fails(400, "expecting only one of 'inputs' or 'instances'"),
        ),
        (
            {"instances": ["a"], "inputs": ["a"]},
            fails(
                400,
                "Not formatted correctly expecting only one of 'inputs' or "
                "'instances' keys to exist",
            ),
        ),
        ({"instances": []}, fails(400, "No values in 'instances' array")),
        ({"instances": "a"}, fails(400, NO_LIST)),
        ({"instances": {"text": ["a"]}}, fails(400, NO_LIST)),
        ({"instances": None}, fails(400, NO_LIST)),
        (
            in_row("several", {"a": [1, 2], "b": 3}, [1]),
            fails(400, "Expecting object but got list at item 1 of input list"),
        ),
        (
            in_row("several", {"a": [1, 2], "b": 3}, {"a": [1, 2]}),
            fails(
                400, "Failed to process element: 1 of 'instances' list. JSON"
            ),
        ),
        (
            in_column("several", {"a": [[1, 2]]}),
            fails(400, "Missing named input: b in 'inputs' object."),
        ),
        ({"inputs": None}, fails(400)),
        ({"inputs": []}, fails({200, 400})),
        ({"inputs": "a"}, fails({200, 400})),
        (
            in_row("x", "a"),
            fails(
                400, 'Serving signature name: "x" not found in signature def'
            ),
        ),
        (
            in_row("\ud800", "a"),
            fails(400),
        ),
        (in_row("__saved_model_init_op", "a"), fails(400)),
        (in_row(1, "a"), fails(400)),
        (in_row(None, "a"), fails(400)),
        (in_row(0, "a"), fails(400)),
        (in_row([], "a"), fails(400)),
        # Values of another type.
        (in_row("text", 5), fails(400, "is not of expected type: string")),
        (in_row("text", 0.5), fails(400, "is not of expected type: string")),
        (in_row("text", True), fails(400, "is not of expected type: string")),
        (in_row("text", None), fails(400, "is not of expected type: string")),
        (in_row("text", "a", 5), fails(400, "is not of expected type: string")),
        (in_column("text", ["a", 5]), fails(400, "expected type: string")),
        (in_row("double", "1"), fails(400, "is not of expected type: float")),
        (in_row("double", True), fails(400, "is not of expected type: float")),
        (in_row("double", None), fails(400, "is not of expected type: float")),
        (in_row("double", b64(b"1")), fails(400, "expected type: float")),
        (in_row("kinds", 1.0), fails(400, "is not of expected type: int32")),
        (in_row("kinds", "1"), fails(400, "is not of expected type: int32")),
        (in_row("kinds", True), fails(400, "is not of expected type: int32")),
        (in_row("kinds", 2**31), fails(400, "is not of expected type: int32")),
        (in_row("negate", True, False), {"predictions": [False, True]}),
        (in_row("negate", 1), fails(400, "is not of expected type: bool")),
        (
            in_row("several", {"a": [1, 2], "b": 2**63}),
            fails(400, "is not of expected type: int64"),
        ),
        (
            in_row("several", {"a": [1, 2], "b": 2**63 - 1}),
            {"predictions": [2.0**63]},
        ),
        (in_row("kinds", 10**400), fails(400)),
        (in_row("double", 10**400), fails(400)),
        (in_row("double", 10**39), fails(400)),
        (in_row("double", 2**24 + 1), fails({200, 400})),
        # Shapes.
        (in_row("several", {"a": [1], "b": 3}), fails(400)),
        (in_row("several", {"a": [1, 2, 3], "b": 3}), fails(400)),
        (in_row("several", {"a": [[1, 2]], "b": 3}), fails(400)),
        (in_row("several", {"a": 1, "b": 3}), fails(400)),
        (
            in_row("several", {"a": [1, 2], "b": 3}, {"a": [1], "b": 3}),
            fails(400),
        ),
        (in_row("double", [1, 2], [1]), fails(400)),
        (in_row("double", 1, [1]), fails(400)),
        (in_row("double", [1], 1), fails(400)),
        (in_column("double", [[1, 2], [1]]), fails(400)),
        (in_column("double", [1, [1]]), fails(400)),
        (in_column("double", [[], [1]]), fails(400)),
        (in_row("text", {"b64": "not base64!"}), fails(400)),
        (in_row("text", {"b64": 1}), fails(400)),
        # What the function itself refuses.
        (in_row("to_number", "1.5", "2"), {"predictions": [1.5, 2.0]}),
        (in_row("to_number", "one"), fails(400)),
        # NaN and infinities may be bare, in requests and answers.
        (
            in_row("double", NAN, INFINITY, -INFINITY),
            {"predictions": [NAN, INFINITY, -INFINITY]},
        ),
        (in_row("log", -1, 0), {"predictions": [NAN, -INFINITY]}),
        (in_column("log", [-1, 0]), {"outputs": [NAN, -INFINITY]}),
        (in_row("kinds", NAN), fails(400, "is not of expected type: int32")),
        (in_row("text", NAN), fails(400, "is not of expected type: string")),
        # An answer is valid UTF-8, or there is none.
        (in_row("to_invalid_utf8", "a"), fails({400, 500})),
        (in_column("to_invalid_utf8", ["a"]), fails({400, 500})),
        # Text that is no JSON object.
        (b"", fails(400, "JSON Parse error: The document is empty")),
        (b"no JSON", fails(400, "JSON Parse error: Invalid value")),
        (b"{", fails(400, "JSON Parse error")),
        (b'{"instances": ["a"]', fails(400, "JSON Parse error")),
        (b'{"instances": ["a"]} x', fails(400, "JSON Parse error")),
        (b'{"instances": ["a",]}', fails(400, "JSON Parse error")),
        (b"{'instances': ['a']}", fails(400, "JSON Parse error")),
        (b'{"instances": ["a\n"]}', fails({200, 400})),
        (b'{"instances": ["\xff"]}', fails(400)),
        (b"\0", fails(400, "JSON Parse error")),
        ([], fails(400, "Is not object")),
        ([HELLO], fails(400, "Is not object")),
        (b'"text"', fails(400, "Is not object")),
        (b"null", fails(400, "Is not object")),
        (b"1", fails(400, "Is not object")),
        # Lone surrogates, and a pair.
        (b'{"instances": ["\\ud800"]}', fails(400)),
        (b'{"instances": ["\\udc00a"]}', fails(400)),
        (b'{"instances": ["a"], "\\ud800": 1}', fails(400)),
        (
            b'{"instances": ["\\ud83d\\ude00"]}',
            {"predictions": [{"text": "😀", "score": 4.0}]},
        ),
        # Deep nesting.
        (b"[" * 100_000, fails(400)),
        (b"[" * 100_000 + b"]" * 100_000, fails(400)),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, fails(400)),
        (
            b'{"instances":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            fails(400),
        ),
        (
            b'{"instances": ["a"], "more": ' + b"[" * 400_000 + b"]" * 400_000,
            fails(400),
        ),
        (b'{"instances": [' + b"1" * 500_000 + b"]}", fails(400)),
    ],
    ids=lambda value: f"{value!r}"[:60].replace("\\", ""),
)
def test_predict(client, body, expected):
    check(send(client, "POST", PREDICT, body), expected)
    check(send(client, "POST", PREDICT, HELLO), HELLO_ANSWER)


def test_nan_is_bare(client):
    answer = send(client, "POST", PREDICT, in_row("double", NAN, -INFINITY))
    assert b"NaN" in answer.content
    assert b"-Infinity" in answer.content
    assert b'"' not in answer.content.replace(b'"predictions"', b"")


def test_floats_have_no_noise_digits(client):
    answer = send(client, "POST", PREDICT, in_row("double", 0.1))
    assert answer.json() == {"predictions": [0.2]}


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/json; charset=latin-1", "no/such"],
)
def test_content_type_is_ignored(client, content_type):
    headers = {} if content_type is None else {"content-type": content_type}
    answer = send(client, "POST", PREDICT, HELLO, headers=headers)
    check(answer, HELLO_ANSWER)


def examples(*values, **more):
    return {"signature_name": "classify", "examples": list(values), **more}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (
            CLASSIFY,
            examples({"text": "good"}, {"text": "Ab"}),
            {
                "results": [
                    [["GOOD", 4.0], ["good", -4.0]],
                    [["AB", 2.0], ["Ab", -2.0]],
                ]
            },
        ),
        (
            CLASSIFY,
            examples({"text": ["a"]}, {"text": b64(b"b")}),
            {"results": [[["A", 1.0], ["a", -1.0]], [["B", 1.0], ["b", -1.0]]]},
        ),
        (
            CLASSIFY,
            examples({"text": "a", "number": 1, "numbers": [0.5, 1.5]}),
            {"results": [[["A", 1.0], ["a", -1.0]]]},
        ),
        (
            CLASSIFY,
            examples({"text": "a", "is_new": True, "n": [False, 2]}),
            {"results": [[["A", 1.0], ["a", -1.0]]]},
        ),
        # A list without values is a feature that is not there.
        (
            CLASSIFY,
            examples({"text": []}),
            {"results": [[["", 0.0], ["", 0.0]]]},
        ),
        # What all examples share; an example's own feature is preferred.
        (
            CLASSIFY,
            examples({}, {"text": "b"}, context={"text": "a"}),
            {"results": [[["A", 1.0], ["a", -1.0]], [["B", 1.0], ["b", -1.0]]]},
        ),
        (CLASSIFY, examples({}), {"results": [[["", 0.0], ["", 0.0]]]}),
        (
            f"{FILMS}:classify",
            {"examples": [{"text": "a"}]},
            {"results": [[["A", 1.0], ["a", -1.0]]]},
        ),
        (
            f"{FILMS}/versions/7:Classify",
            {"examples": [{"text": "a"}]},
            {"results": [[["A", 1.0], ["a", -1.0]]]},
        ),
        (CLASSIFY, examples(), fails(400, "'examples' value is an empty arr")),
        (
            CLASSIFY,
            {"signature_name": "classify"},
            fails(400, "key 'examples' is expected and was not found"),
        ),
        (
            CLASSIFY,
            in_row("classify_scores", "a") | {"examples": [{"text": "a"}]},
            {"results": [[["", 1.0], ["", -1.0]]]},
        ),
        (
            CLASSIFY,
            in_row("classify_names", "a") | {"examples": [{"text": "a"}]},
            {"results": [[["A", 0.0], ["a", 0.0]]]},
        ),
        (
            CLASSIFY,
            examples("a"),
            fails(400, "Example must be JSON object but got JSON String"),
        ),
        (CLASSIFY, examples({"text": None}), fails(400)),
        (CLASSIFY, examples({"text": {"a": 1}}), fails(400)),
        (CLASSIFY, examples({"text": [["a"]]}), fails(400)),
        (CLASSIFY, examples({"text": ["a", 1]}), fails(400)),
        (CLASSIFY, examples({"text": "a", "n": [1, 0.5]}), fails(400)),
        (CLASSIFY, examples({"text": "a", "n": 1e39}), fails(400)),
        (CLASSIFY, examples({"text": 5}), fails(400)),
        (CLASSIFY, examples({"text": ["a", "b"]}), fails(400)),
        (CLASSIFY, examples({"text": {"b64": "!"}}), fails(400)),
        (CLASSIFY, examples({"text": "a", "n": 2**63}), fails(400)),
        (CLASSIFY, examples({"text": "a"}, context=5), fails(400)),
        (
            CLASSIFY,
            {**examples(), "examples": {"text": "a"}},
            fails(400, "Expecting 'examples' value to be an list/array"),
        ),
        (
            CLASSIFY,
            {"signature_name": "x", "examples": [{"text": "a"}]},
            fails(400),
        ),
        # The default signature and the others are none of classification.
        (CLASSIFY, {"examples": [{"text": "a"}]}, fails(400)),
        (
            CLASSIFY,
            {"signature_name": "text", "examples": [{"text": "a"}]},
            fails(400),
        ),
        (f"{MANY}:regress", examples({"text": "a"}), fails(400)),
        (f"{FILMS}:regress", {"examples": [{"text": "a"}]}, fails(400)),
        (
            "/v1/models/other:classify",
            {"examples": [{"text": "a"}]},
            fails(404, "Servable not found for request: Latest(other)"),
        ),
        (CLASSIFY, b"", fails(400, "JSON Parse error: The document is empty")),
        (CLASSIFY, [], fails(400, "Is not object")),
        (CLASSIFY, b'{"examples": [{"text": "\\ud800"}]}', fails(400)),
    ],
    ids=lambda value: f"{value!r}"[:60].replace("\\", ""),
)
def test_classify(client, path, body, expected):
    check(send(client, "POST", path, body), expected)


def status_of(*versions):
    return [
        {
            "version": str(version),
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
        for version in versions
    ]


@pytest.mark.parametrize(
    ("path", "versions"),
    [
        (MANY, (1, 2)),
        (f"{MANY}/versions/1", (1,)),
        (f"{MANY}/versions/2", (2,)),
        (f"{MANY}/labels/stable", (1,)),
        (f"{MANY}/labels/not%20new", (1,)),
        ("/V1/models/m%61ny/Versions/2", (2,)),
        (FILMS, (7,)),
    ],
)
def test_status(client, path, versions):
    answer = send(client, "GET", path).json()
    assert list(answer) == ["model_version_status"]
    answer["model_version_status"].sort(key=lambda row: row["version"])
    assert answer["model_version_status"] == status_of(*versions)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/v1/models/other",
            fails(404, "Could not find any versions of model other"),
        ),
        (
            f"{MANY}/versions/9",
            fails(404, "Could not find version 9 of model many"),
        ),
        (
            f"{MANY}/labels/x",
            fails(400, "Unrecognized servable version label"),
        ),
        ("/v1/models/other/metadata", fails(404)),
        (f"{MANY}/versions/9/metadata", fails(404)),
        (f"{MANY}/labels/x/metadata", fails(400)),
    ],
)
def test_status_of_what_is_not_there(client, path, expected):
    check(send(client, "GET", path), expected)


def test_status_is_the_message_of_tensorflow_serving(client):
    messages = pytest.importorskip(
        "tensorflow_serving.apis.get_model_status_pb2"
    )
    status = json_format.Parse(
        send(client, "GET", MANY).text, messages.GetModelStatusResponse()
    )
    assert {row.version for row in status.model_version_status} == {1, 2}
    assert {row.state for row in status.model_version_status} == {30}


@pytest.mark.parametrize(
    ("path", "name", "version"),
    [
        (f"{MANY}/metadata", "many", "2"),
        (f"{MANY}/versions/1/metadata", "many", "1"),
        (f"{MANY}/labels/stable/METADATA", "many", "1"),
        (f"{FILMS}/metadata", "my films", "7"),
    ],
)
def test_metadata(client, models, path, name, version):
    file = models[name] / version / "saved_model.pb"
    saved = SavedModel.FromString(file.read_bytes())
    signatures = {
        key: json_format.MessageToDict(
            signature,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for key, signature in saved.meta_graphs[0].signature_def.items()
    }
    assert "__saved_model_init_op" in signatures
    assert send(client, "GET", path).json() == {
        "model_spec": {
            "name": name,
            "signature_name": "",
            "version": version,
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def padded(size):
    return json.dumps(HELLO).encode().ljust(size)


def test_body_limit(client):
    check(send(client, "POST", PREDICT, padded(BODY_LIMIT)), HELLO_ANSWER)
    answer = send(client, "POST", PREDICT, padded(BODY_LIMIT + 1))
    assert 400 <= answer.status_code < 500


def test_body_limit_of_a_stream(client):
    chunks = iter([padded(BODY_LIMIT), b" "])
    answer = client.post(PREDICT, content=chunks)
    assert 400 <= answer.status_code < 500
    assert list(answer.json()) == ["error"]
    check(send(client, "POST", PREDICT, HELLO), HELLO_ANSWER)


def test_body_limit_of_what_follows_gzip(client):
    chunks = iter([gzip.compress(json.dumps(HELLO).encode()), b" " * 2**22])
    answer = client.post(PREDICT, content=chunks, headers=GZIP)
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_as_deep_as_python_goes(client, opening):
    """Whatever reads a value, and quotes it in an error, has one limit."""
    closing = "]" if opening == "[" else "}"
    limit = sys.getrecursionlimit()
    for depth in range(limit - 60, limit + 10):
        deep = f"{opening * depth}1{closing * depth}"
        for signature, first in (("text", '"a"'), ("double", "1")):
            body = (
                f'{{"signature_name": "{signature}", '
                f'"instances": [{first}, {deep}]}}'
            )
            check(send(client, "POST", PREDICT, body.encode()), fails(400))


GZIP = {"content-encoding": "gzip"}


def test_gzip(client):
    body = gzip.compress(json.dumps(HELLO).encode())
    check(send(client, "POST", PREDICT, body, headers=GZIP), HELLO_ANSWER)


def bomb():
    """128 MiB of spaces."""
    packer = zlib.compressobj(1, wbits=31)
    chunk = b" " * 2**20
    return b"".join(packer.compress(chunk) for _ in range(128)) + packer.flush()


@pytest.mark.parametrize(
    "body",
    [
        bomb(),
        gzip.compress(b" " * 2**20) * 128,
        gzip.compress(json.dumps(HELLO).encode())[:-12],
        gzip.compress(padded(BODY_LIMIT + 1)),
        json.dumps(HELLO).encode(),
    ],
    ids=["bomb", "many members", "truncated", "over the limit", "no gzip"],
)
def test_hostile_gzip(client, body):
    assert len(body) < BODY_LIMIT
    tracemalloc.start()
    try:
        answer = send(client, "POST", PREDICT, body, headers=GZIP)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 400 <= answer.status_code < 500
    assert peak < 16 * BODY_LIMIT
    check(send(client, "POST", PREDICT, HELLO), HELLO_ANSWER)


@pytest.mark.parametrize("rest", [b"\0", b"garbage", b"\x1f\x8b"])
def test_what_follows_gzip(client, rest):
    """A second member, or anything else, is not silently left out."""
    whole = gzip.compress(json.dumps(HELLO).encode())
    for body in (whole + rest, gzip.compress(b"") + whole, whole + whole):
        check(
            send(client, "POST", PREDICT, body, headers=GZIP),
            fails(400, "The gzip body has more than one member"),
        )


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("YQ==", b"a"),
        ("YQ", b"a"),
        ("YWI", b"ab"),
        ("YWJj", b"abc"),
        (" Y Q\n=\t=\r\n", b"a"),
        ("Y\v\fQ", b"a"),
        ("YQ..", b"a"),
        ("YR==", b"a"),  # bits that are left are ignored
        ("\n".join("YWJj" * 60), b"abc" * 60),
    ],
)
def test_base64(client, text, data):
    body = in_row("to_bytes", {"b64": text})
    expected = {"predictions": [b64(b"\xff" + data)]}
    check(send(client, "POST", PREDICT, body), expected)


@pytest.mark.parametrize(
    "text",
    [
        *("Y", "YWJjY", "YQ=", "YWI==", "YQ===", "YWJj=", "=", "====", "Y==="),
        *("YQ==YQ==", "Y=Q=", "_-==", "YQ-_", "YQ\0\0", "YQ!", "\xa0YQ", "é"),
        *("YQ\u2003", "YQ==!", "YQ,", "\ud800"),
    ],
)
def test_what_is_no_base64(client, text):
    body = in_row("to_bytes", {"b64": text})
    expected = fails(400, "" if "\ud800" in text else "Unable to base64 decode")
    check(send(client, "POST", PREDICT, body), expected)


def test_the_first_of_equal_keys(client):
    """As in RapidJSON."""
    body = b'{"instances": [{"text": "hello", "text": 5}], "instances": 7}'
    check(send(client, "POST", PREDICT, body), HELLO_ANSWER)


def test_pages_of_other_sites(client):
    for headers in (
        {"origin": "http://evil.example", "content-type": "text/plain"},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = send(client, "POST", PREDICT, HELLO, headers=headers)
        check(answer, fails(403, "a page of another site"))
        assert send(client, "GET", MANY, headers=headers).status_code == 200
    own = {"origin": "http://localhost"}
    check(send(client, "POST", PREDICT, HELLO, headers=own), HELLO_ANSWER)


def test_request_ids_and_what_is_logged(store, open_client):
    records = []
    client = open_client(store, log=records.append)
    sent = {"x-request-id": "trace-7/a"}
    answer = client.post(PREDICT, json=HELLO, headers=sent)
    assert answer.headers["x-request-id"] == "trace-7/a"
    client.post(f"{MANY}/labels/stable:predict", json={})
    client.get(MANY)
    for hostile in ("a b", "é".encode(), "a" * 129, "", '"'):
        client.get(MANY, headers={"x-request-id": hostile})
    versions = [record["version"] for record in records]
    assert versions == [2, 1, *[None] * 6]
    assert records[0]["request_id"] == "trace-7/a"
    made = {record["request_id"] for record in records[1:]}
    assert len(made) == 7
    assert all(len(each) == 32 and each.isalnum() for each in made)
    assert records[0]["time"] <= records[1]["time"] <= records[2]["time"]
    assert records[0]["time"].endswith("+00:00")
    assert "hello" not in json.dumps(records)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8501", "LOCALHOST", "localhost."),
        *("10.0.0.5:8501", "[::1]:8501"),
    ],
)
def test_allowed_host(client, host):
    answer = send(client, "POST", PREDICT, HELLO, headers={"host": host})
    check(answer, HELLO_ANSWER)


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8501", ""]
)
def test_other_host(client, host):
    answer = client.post(PREDICT, json=HELLO, headers={"host": host})
    assert 400 <= answer.status_code < 500
    assert "HELLO" not in answer.text


def test_no_cors(client):
    headers = {
        "origin": "http://evil.example",
        "access-control-request-method": "POST",
    }
    answer = send(client, "OPTIONS", PREDICT, HELLO, headers=headers)
    assert answer.status_code == 400
    send(client, "POST", PREDICT, HELLO, headers=headers)  # checks the header


VALID = [
    (PREDICT, HELLO),
    (PREDICT, {"inputs": {"text": ["a", b64(b"b")]}}),
    (PREDICT, in_row("several", {"a": [1, 2.5], "b": 3})),
    (PREDICT, in_column("several", {"a": [[1, 2], [3, 4]], "b": [3, 0]})),
    (PREDICT, in_row("kinds", 1, -2, 3)),
    (PREDICT, in_row("negate", True)),
    (PREDICT, in_row("to_number", "1.5", "2")),
    (PREDICT, in_column("with_count", ["a", "b"])),
    (CLASSIFY, examples({"text": "a", "n": [1, 2]}, context={"x": 0.5})),
]
TOKENS = [
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-0", b"0.5"),
    *(b"{}", b"[]", b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"\0"),
    *(b'{"b64": "YQ=="}', b'{"b64": "Y"}', b'"\\ud800"', b'"\\u0000"'),
    *(b"9" * 30, b"9" * 400, b"-9223372036854775809", b"\xff", b"\xef\xbb\xbf"),
    *(b'"inputs"', b'"instances"', b'"signature_name"', b'"text"', b'"a"'),
]


def mutate(random, body):
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(body) + 1)
        end = min(len(body), start + random.randint(0, 8))
        match random.randrange(4):
            case 0:
                body = body[:start] + body[end:]
            case 1:
                body = body[:start] + random.choice(TOKENS) + body[start:]
            case 2:
                body = body[:start] + random.choice(TOKENS) + body[end:]
            case 3:
                part = body[start : start + random.randint(1, 30)]
                place = random.randrange(len(body) + 1)
                body = body[:place] + part + body[place:]
    return body


def test_mutated_bodies(client, seed):
    draws = random.Random(seed)
    for _ in range(50):
        for path, body in VALID:
            mutated = mutate(draws, json.dumps(body).encode())
            answer = send(client, "POST", path, mutated)
            assert answer.status_code in {200, 400}, (mutated, answer.text)
    for path, body in VALID:
        assert send(client, "POST", path, body).status_code == 200


def test_random_paths(client, seed):
    draws = random.Random(seed)
    parts = [
        *("/", ":", "models", "many", "versions", "1", "labels", "stable"),
        *("metadata", "predict", "%20", "%ff", "%00", "%2F", "a", "٣"),
    ]
    for _ in range(200):
        words = draws.choices(parts, k=draws.randint(1, 8))
        method = draws.choice(["GET", "POST"])
        path = "/v1/models/" + "".join(words)
        body = b"" if method == "GET" else HELLO
        answer = send(client, method, path, body)
        assert answer.status_code < 500, (path, answer.text)


def test_concurrent_requests_equal_those_alone(client, seed):
    draws = random.Random(seed)
    texts = ["a" * draws.randint(0, 200) for _ in range(40)]
    bodies = [in_row("text", text, text + "b") for text in texts]
    bodies += [in_column("with_count", [text] * 3) for text in texts[:10]]
    bodies += [in_row("to_number", str(n)) for n in range(10)]
    bodies += [in_row("to_number", "not a number", "1")] * 5
    bodies += [in_row("double", n, -n) for n in range(10)]
    bodies += [in_row("text", "a", 5)] * 5
    draws.shuffle(bodies)
    alone = [send(client, "POST", PREDICT, body) for body in bodies]
    with ThreadPoolExecutor(16) as threads:
        together = list(
            threads.map(
                lambda body: send(client, "POST", PREDICT, body), bodies
            )
        )
    for one, other in zip(alone, together, strict=True):
        assert one.status_code in {200, 400}
        assert other.status_code == one.status_code, other.text
        if one.status_code == 200:
            assert other.json() == one.json()


def test_timeout(store, open_client):
    """A slow request is given up, while others get their answers."""
    client = open_client(store, timeout=0.6)
    slow = in_row("count_slowly", 500_000)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(send, client, "POST", PREDICT, slow)
        check(send(client, "POST", PREDICT, HELLO), HELLO_ANSWER)
        check(waiting.result(), fails(504))
    check(send(client, "POST", PREDICT, HELLO), HELLO_ANSWER)


def test_full_queue(store, open_client):
    client = open_client(store, queue_size=2)
    slow = in_column("count_slowly", [10_000])
    with ThreadPoolExecutor(12) as threads:
        answers = list(
            threads.map(
                lambda _: send(client, "POST", PREDICT, slow), range(36)
            )
        )
    assert {answer.status_code for answer in answers} == {200, 429}
    for answer in answers:
        if answer.status_code == 200:
            check(answer, {"outputs": [10_000]})
    check(send(client, "POST", PREDICT, HELLO), HELLO_ANSWER)
