import json

import numpy as np
import pytest

from kseq import pictures
from kseq.serving import Attention

WEIGHTS = np.arange(12.0).reshape(2, 2, 3)


def test_rows_have_no_padding():
    rows = [
        {"source_tokens": source, "target_tokens": target, "attention": weights}
        for source, target, weights in zip(
            [[b"a", b"b", b""], [b"a", b"b", b"c"]],
            [[b"x", b"y"], [b"x", b""]],
            WEIGHTS,
            strict=True,
        )
    ]
    first, second = map(Attention.of_row, rows)
    assert first[:2] == (["a", "b"], ["x", "y"])
    np.testing.assert_array_equal(first.weights, WEIGHTS[0, :, :2])
    assert second[:2] == (["a", "b", "c"], ["x"])
    np.testing.assert_array_equal(second.weights, WEIGHTS[1, :1])


def test_bytes_that_are_no_utf8_are_replaced():
    row = {"source_tokens": [b"\xff"], "target_tokens": ["é".encode()]}
    attention = Attention.of_row({**row, "attention": np.ones((1, 1))})
    assert attention[:2] == (["\ufffd"], ["é"])


def test_json_and_a_picture():
    weights = np.array([[1 / 3, 2 / 3]], "float32")
    attention = Attention(["a", "b"], ["x"], weights)
    assert json.loads(json.dumps(attention.to_json())) == {
        "source_tokens": ["a", "b"],
        "target_tokens": ["x"],
        "weights": [[0.333333, 0.666667]],
    }
    assert attention._repr_png_().startswith(b"\x89PNG\r\n")


def test_padding_between_turns_is_left_out():
    row = {
        "source_tokens": [b"a", b"</s>", b"", b"b", b"c", b"</s>"],
        "target_tokens": [b"x", b"</s>"],
        "attention": np.array(
            [[0.3, 0.2, 9, 0.1, 0.1, 0.3], [0, 0, 9, 0, 0, 1]]
        ),
    }
    attention = Attention.of_row(row)
    assert attention.source_tokens == ["a", "</s>", "b", "c", "</s>"]
    np.testing.assert_allclose(attention.turn_weights, [[0.5, 0.5], [0, 1]])
    assert attention._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("tokens", "turns"),
    [([], []), (["a", "b"], [2]), (["a", "</s>", "b"], [2, 1])],
)
def test_turns_without_an_end_and_no_turns(tokens, turns):
    attention = Attention(tokens, ["x"], np.ones((1, len(tokens))))
    np.testing.assert_array_equal(attention.turn_weights, [turns])


@pytest.mark.parametrize(
    ("tokens", "name"),
    [
        (["a", "</s>"], "attention_picture"),
        (["a", "</s>", "b", "</s>"], "turn_attention_picture"),
    ],
)
def test_a_dialogue_has_a_picture_of_turns(monkeypatch, tokens, name):
    monkeypatch.setattr(pictures, name, lambda *_: b"this one")
    attention = Attention(tokens, ["x"], np.ones((1, len(tokens))))
    assert attention._repr_png_() == b"this one"
