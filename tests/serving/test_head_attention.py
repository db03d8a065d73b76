import numpy as np
import pytest

from kseq.serving import head_attention
from kseq.user_error import UserError


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_rows_are_distributions_over_the_tokens(generators, part):
    texts = ["the cat", "12 bones and a dog"]
    found = head_attention(generators["transformer"], texts, part, head=1)
    for attention in found:
        queries, keys = attention.target_tokens, attention.source_tokens
        assert attention.weights.shape == (len(queries), len(keys))
        np.testing.assert_allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
        if part != "cross":
            assert queries == keys
        if part == "decoder":  # no query sees what follows it
            assert queries[0] == "<s>"
            assert not np.triu(attention.weights, 1).any()
    assert found[0]._repr_png_().startswith(b"\x89PNG")


def test_the_mean_of_the_heads_is_what_explain_shows(generators):
    generator = generators["transformer"]
    heads = [
        head_attention(generator, ["the cat"], "cross", head=head)[0].weights
        for head in range(generator.model.num_heads)
    ]
    [shown] = generator.predictor().attention(["the cat"])
    np.testing.assert_allclose(np.mean(heads, axis=0), shown.weights, atol=1e-5)


@pytest.mark.parametrize(
    "place", [{"part": "middle"}, {"block": 7}, {"head": 9}]
)
def test_a_head_that_is_not_there(generators, place):
    [value] = place.values()
    with pytest.raises(UserError, match=f"Received: .*{value}"):
        head_attention(generators["transformer"], ["a"], **place)


def test_a_model_without_heads(generators):
    with pytest.raises(UserError, match="no attention heads"):
        head_attention(generators["lstm"], ["a"])
