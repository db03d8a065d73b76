import json

import numpy as np
import pytest

from kseq.server import json_answers
from kseq.server.json_tensors import to_values
from kseq.server.request_error import RequestError

DRAW = np.random.default_rng(1)


def words(*shape):
    chosen = DRAW.choice([b"", b"a", "ß日".encode(), b'"\\'], np.prod(shape))
    return np.array(chosen, object).reshape(shape)


def floats(*shape):
    values = DRAW.standard_normal(shape).astype(np.float32)
    values[DRAW.random(shape) < 0.5] = 0
    return values


OUTPUTS = {
    "one": lambda rows: {"text": words(rows)},
    "several": lambda rows: {
        "score": floats(rows),
        "text": words(rows),
        "truncated": floats(rows) > 0,
    },
    "wide rows": lambda rows: {
        "attention": floats(rows, 3, 7),
        "tokens": words(rows, 5),
    },
    "one wide": lambda rows: {"x": floats(rows, 2, 3)},
    "no columns": lambda rows: {"x": floats(rows, 0), "y": floats(rows)},
    "bytes": lambda rows: {"raw_bytes": words(rows, 2)},
}


def predictions(outputs, is_row):
    """The answer as it is without pieces."""
    values = {name: to_values(name, value) for name, value in outputs.items()}
    if len(values) == 1:
        [found] = values.values()
    elif is_row:
        rows = zip(*values.values(), strict=True)
        found = [dict(zip(values, row, strict=True)) for row in rows]
    else:
        found = values
    return {"predictions" if is_row else "outputs": found}


@pytest.mark.parametrize("at_once", [1, 3, 10, 10_000])
@pytest.mark.parametrize("rows", [0, 1, 2, 17])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_pieces_are_the_whole(monkeypatch, kind, rows, at_once):
    monkeypatch.setattr(json_answers, "_AT_ONCE", at_once)
    outputs = OUTPUTS[kind](rows)
    for is_row in (True, False):
        whole = predictions(outputs, is_row)
        found = json_answers.predicted_bytes(outputs, is_row)
        assert found.decode() == json.dumps(whole, ensure_ascii=False)


@pytest.mark.parametrize("at_once", [1, 3, 10, 10_000])
@pytest.mark.parametrize("rows", [0, 1, 17])
def test_pieces_of_classifications(monkeypatch, rows, at_once):
    monkeypatch.setattr(json_answers, "_AT_ONCE", at_once)
    outputs = {"classes": words(rows, 3), "scores": floats(rows, 3)}
    found = json_answers.classified_bytes(outputs)
    classes, scores = (
        to_values(name, outputs[name]) for name in ("classes", "scores")
    )
    assert json.loads(found) == {
        "results": [
            [[label, score] for label, score in zip(*row, strict=True)]
            for row in zip(classes, scores, strict=True)
        ]
    }


def test_outputs_without_common_rows(monkeypatch):
    monkeypatch.setattr(json_answers, "_AT_ONCE", 1)
    outputs = {"text": words(3), "three": floats(4)}
    with pytest.raises(RequestError, match="inconsistent batch size: 4"):
        json_answers.predicted_bytes(outputs, is_row=True)
    found = json.loads(json_answers.predicted_bytes(outputs, is_row=False))
    assert len(found["outputs"]["three"]) == 4


def test_what_is_no_number_and_both_zeros():
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.1], np.float32)
    found = json_answers.predicted_bytes({"x": values}, is_row=False)
    assert found == b'{"outputs": [NaN, Infinity, -Infinity, -0.0, 0.1]}'


def test_complex_numbers_are_refused():
    with pytest.raises(RequestError, match="y has complex numbers") as refused:
        json_answers.predicted_bytes({"y": np.array([1 + 2j])}, True)
    assert refused.value.status == 501
