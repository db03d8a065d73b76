import pytest

from kseq import layers


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        ("additive", {}, layers.BahdanauAttention),
        ("location_aware", {}, layers.LocationAwareAttention),
        ("location", {"max_length": 9}, layers.LocationAttention),
        ("dot", {}, layers.LuongAttention),
        ("concat", {"local": "predictive"}, layers.LocalAttention),
    ],
)
def test_the_layer_of_a_name(name, choices, expected):
    attention = layers.attention_named(name, 4, **choices)
    assert type(attention) is expected
    assert attention.name == "attention"


def test_none_has_no_layer():
    assert layers.attention_named("none", 4) is None


@pytest.mark.parametrize("name", ["additive", "location_aware", "general"])
def test_the_last_states(name):
    assert layers.attention_named(name, 4).window is None
    assert layers.attention_named(name, 4, last_states=3).window == 3


@pytest.mark.parametrize("score", ["dot", "concat"])
@pytest.mark.parametrize("local", ["none", "monotonic"])
def test_only_concat_has_a_hidden_layer(score, local):
    attention = layers.attention_named(score, 4, local=local, window=2)
    assert attention.units == (4 if score == "concat" else None)
    assert attention.window == (None if local == "none" else 2)


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("", {}, "score must be"),
        ("Additive", {}, "score must be"),
        ("additive", {"local": "monotonic"}, "score must be"),
        ("dot", {"local": ""}, "alignment must be"),
        ("dot", {"local": "monotonic", "window": 0}, "window must be"),
        ("dot", {"last_states": -1}, "window must be"),
        ("location", {}, "max_length must be"),
        ("location", {"max_length": 0}, "max_length must be"),
    ],
)
def test_invalid_choices(name, choices, message):
    with pytest.raises(ValueError, match=message):
        layers.attention_named(name, 4, **choices)
