import gc
import json

import pytest

from kseq.server.json_bodies import json_memory, parse_json
from kseq.server.request_error import RequestError

MIB = 2**20


@pytest.mark.parametrize(
    "body",
    [
        b'{"instances": [%s]}' % b",".join([b"[]"] * MIB),
        b'{"instances": ["a"], "x": [%s]}' % b",".join([b'{"":0}'] * MIB),
        b"[" * 2 * MIB,
    ],
    ids=["lists", "objects", "depth"],
)
def test_many_containers_are_refused_before_there_are_any(body):
    with pytest.raises(RequestError, match="too many values") as error:
        json_memory(body, 128 * MIB)
    assert error.value.status == 413


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"instances": ["a"] * 900_000}).encode(),
        json.dumps({"instances": [{"b64": "A" * 60 * MIB}]}).encode(),
        json.dumps({"instances": ["a, b [c] {d}" * 200_000]}).encode(),
    ],
    ids=["rows", "picture", "text"],
)
def test_large_requests_are_not(body):
    assert json_memory(body, 128 * MIB) >= 3 * len(body)


def test_large_json_is_read_as_small_json_is():
    value = {"instances": [[1, "a"]] * 20_000}
    assert parse_json(json.dumps(value)) == value
    assert gc.isenabled()
    with pytest.raises(ValueError):
        parse_json("[" + "1," * 50_000)
    assert gc.isenabled()
