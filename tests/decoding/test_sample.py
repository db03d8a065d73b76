import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.decoding import greedy_search, sample
from kseq.decoding.next_log_probs import next_log_probs


def test_same_seed_same_answers(make_model, source_ids, in_graph, seed):
    model, limits = make_model(), [20, 20, 20]

    first = in_graph(sample, model, source_ids, limits, seed=seed)
    second = in_graph(sample, model, source_ids, limits, seed=seed)
    others = [
        in_graph(sample, model, source_ids, limits, seed=seed + i)
        for i in range(1, 4)
    ]

    np.testing.assert_array_equal(first.ids, second.ids)
    assert any(
        other.ids.shape != first.ids.shape
        or not np.array_equal(other.ids, first.ids)
        for other in others
    )


@pytest.mark.parametrize("kwargs", [{"top_k": 1}, {"top_p": 1e-6}])
def test_only_the_likeliest_token_is_greedy_search(
    make_model, source_ids, in_graph, seed, kwargs
):
    model, limits = make_model(), [6, 4, 9]

    drawn = in_graph(sample, model, source_ids, limits, seed=seed, **kwargs)
    greedy = in_graph(greedy_search, model, source_ids, limits)

    np.testing.assert_array_equal(drawn.ids, greedy.ids)
    np.testing.assert_allclose(drawn.scores, greedy.scores, rtol=1e-5)


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.5}],
    ids=str,
)
def test_tokens_come_as_often_as_they_should(
    make_model, source_ids, in_graph, seed, kwargs
):
    model, draws = make_model(), 4000
    item = source_ids[:1]
    logits = model({"source_ids": item, "target_ids": [[START]]})[:, 0]
    expected = np.exp(
        next_log_probs(logits)[0] / kwargs.get("temperature", 1.0)
    )
    order = np.argsort(-expected)
    falling = expected[order] / expected.sum()
    kept = kwargs.get("top_k") or 7
    if "top_p" in kwargs:
        full = np.exp(next_log_probs(logits)[0])[order]
        full = full / full.sum()
        kept = np.searchsorted(np.cumsum(full), kwargs["top_p"]) + 1
    falling[kept:] = 0
    expected[order] = falling / falling.sum()

    drawn = in_graph(
        sample,
        model,
        tf.repeat(item, draws, axis=0),
        np.ones(draws),
        seed=seed,
        **kwargs,
    )

    counts = np.bincount(drawn.ids.numpy().ravel(), minlength=7)
    assert counts[expected == 0].sum() == 0
    np.testing.assert_allclose(counts / draws, expected, atol=0.05)


def test_scores_are_by_the_model_itself(
    make_model, source_ids, in_graph, scores_of, seed
):
    model = make_model(bias={PAD: 9.0})

    drawn = in_graph(
        sample, model, source_ids, [6, 4, 9], seed=seed, temperature=3.0
    )

    expected = scores_of(model, drawn.ids)
    np.testing.assert_allclose(drawn.scores, expected, atol=1e-4)


@pytest.mark.parametrize(
    "kwargs",
    [{"temperature": 0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}],
    ids=str,
)
def test_bad_arguments(make_model, source_ids, kwargs):
    (name, value), *_ = kwargs.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value}"):
        sample(make_model(), source_ids, [6, 4, 9], seed=0, **kwargs)
