import gc
import json

import pytest

from kseq.server.json_bodies import json_memory, parse_json
from kseq.server.request_error import RequestError

MIB = 2**20


@pytest.mark.parametrize(
    "body",
    [
        lambda: b'{"instances": [%s]}' % b",".join([b"[]"] * MIB),
        lambda: (
            b'{"instances": ["a"], "x": [%s]}' % b",".join([b'{"":0}'] * MIB)
        ),
        lambda: b"[" * 2 * MIB,
    ],
    ids=["lists", "objects", "depth"],
)
def test_many_containers_are_refused_before_there_are_any(body):
    with pytest.raises(RequestError, match="too many values") as error:
        json_memory(body(), 128 * MIB)
    assert error.value.status == 413


@pytest.mark.parametrize(
    "instances",
    [
        lambda: ["a"] * 900_000,
        lambda: [{"b64": "A" * 60 * MIB}],
        lambda: ["a, b [c] {d}" * 200_000],
    ],
    ids=["rows", "picture", "text"],
)
def test_large_requests_are_not(instances):
    body = json.dumps({"instances": instances()}).encode()
    assert json_memory(body, 128 * MIB) >= 3 * len(body)


def test_large_json_is_read_as_small_json_is():
    value = {"instances": [[1, "a"]] * 20_000}
    assert parse_json(json.dumps(value)) == value
    assert gc.isenabled()
    with pytest.raises(ValueError):
        parse_json("[" + "1," * 50_000)
    assert gc.isenabled()
