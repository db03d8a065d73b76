import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.decoding import GreedySearch, Sampling
from kseq.decoding.next_tokens import next_log_probs
from kseq.decoding.sampling import SamplingParams


def test_same_seed_same_answers(make_model, source_ids, searched, seed):
    model, limits = make_model(), [8, 8, 8]

    first, second, *others = (
        searched(Sampling(seed=s, temperature=2.0), model, source_ids, limits)
        for s in (seed, seed, seed + 1, seed + 2, seed + 3)
    )

    np.testing.assert_array_equal(first.ids, second.ids)
    assert any(
        other.ids.shape != first.ids.shape
        or not np.array_equal(other.ids, first.ids)
        for other in others
    )


def test_item_alone_and_in_a_batch(make_model, source_ids, traced, seed):
    """Also in another order."""
    sampling = Sampling(seed=seed, num_samples=3)
    search = traced(sampling, make_model(), n_best=2)
    limits = tf.constant([6, 4, 9])

    together = search(source_ids, limits)
    reverse = search(source_ids[::-1], limits[::-1])

    np.testing.assert_array_equal(together.ids, reverse.ids[::-1])
    for i, length in enumerate([4, 2, 5]):
        alone = search(source_ids[i : i + 1, :length], limits[i : i + 1])
        width = alone.ids.shape[2]
        np.testing.assert_array_equal(
            together.ids[i : i + 1, :, :width], alone.ids
        )
        np.testing.assert_allclose(
            together.scores[i : i + 1], alone.scores, atol=1e-4
        )


def test_items_that_are_drawn_each_in_its_way(
    make_model, source_ids, searched, seed
):
    """An item is what a search of its own draws, also if others leave."""
    model, limits = make_model(), [6, 4, 9]
    ways = [(0.7, 0.9, seed), (2.0, 1.0, seed + 1), (1.5, 0.5, seed)]
    params = SamplingParams.clipped(
        tf.constant([way[0] for way in ways]),
        tf.constant([way[1] for way in ways]),
        tf.constant([way[2] for way in ways], tf.int64),
    )
    together = searched(
        Sampling(num_samples=2),
        model,
        source_ids,
        limits,
        n_best=2,
        params=params,
    )
    for item, (temperature, top_p, its_seed) in enumerate(ways):
        search = Sampling(
            temperature, top_p=top_p, seed=its_seed, num_samples=2
        )
        own = searched(search, model, source_ids, limits, n_best=2)
        width = min(own.ids.shape[2], together.ids.shape[2])
        np.testing.assert_array_equal(
            own.ids[item, :, :width], together.ids[item, :, :width]
        )
        np.testing.assert_allclose(
            own.scores[item], together.scores[item], atol=1e-4
        )


def test_draws_out_of_range_become_the_nearest():
    wrong = tf.constant([math.nan, -1.0, math.inf])
    params = SamplingParams.clipped(wrong, wrong, tf.zeros(3, tf.int64))
    np.testing.assert_allclose(params.temperature, [1, 0.001, 1000])
    np.testing.assert_allclose(params.top_p, [1, 1e-6, 1])


@pytest.mark.parametrize("kwargs", [{"top_k": 1}, {"top_p": 1e-6}])
def test_only_the_likeliest_token_is_greedy_search(
    make_model, source_ids, searched, seed, kwargs
):
    model, limits = make_model(), [6, 4, 9]
    sampling = Sampling(seed=seed, **kwargs)

    drawn = searched(sampling, model, source_ids, limits)
    greedy = searched(GreedySearch(), model, source_ids, limits)

    np.testing.assert_array_equal(drawn.ids, greedy.ids)
    np.testing.assert_allclose(drawn.scores, greedy.scores, atol=1e-5)


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.5}],
    ids=str,
)
def test_tokens_are_drawn_with_their_probabilities(
    make_model, source_ids, searched, seed, kwargs
):
    model, draws = make_model(), 4000
    item = source_ids[:1]
    logits = model({"source_ids": item, "target_ids": [[START]]})[:, 0]
    log_probs = next_log_probs(tf.nn.log_softmax(logits), None)[0]
    expected = np.exp(log_probs / kwargs.get("temperature", 1.0))
    order = np.argsort(-expected)
    falling = expected[order] / expected.sum()
    kept = kwargs.get("top_k") or 7
    if "top_p" in kwargs:
        full = np.exp(log_probs)[order]
        full = full / full.sum()
        kept = np.searchsorted(np.cumsum(full), kwargs["top_p"]) + 1
    falling[kept:] = 0
    expected[order] = falling / falling.sum()

    sampling = Sampling(seed=seed, num_samples=draws, **kwargs)
    drawn = searched(sampling, model, item, [1], n_best=draws)

    counts = np.bincount(drawn.ids.numpy().ravel(), minlength=7)
    assert counts[expected == 0].sum() == 0
    np.testing.assert_allclose(counts / draws, expected, atol=0.05)


@pytest.mark.parametrize("kwargs", [{"top_k": 2}, {"top_p": 0.7}], ids=str)
def test_tokens_as_likely_as_the_last_one_are_drawn_too(kwargs):
    """None of them is preferred for its number, as in transformers."""

    class Tied:
        def encode(self, inputs):
            return {"count": tf.zeros((tf.shape(inputs)[0],))}

        def decode_step(self, token_ids, state):
            logits = tf.constant([[0.0, 0.0, 0.0, 3.0, 2.0, 2.0, 2.0, -5.0]])
            return tf.repeat(logits, tf.size(token_ids), axis=0), state

    sampling = Sampling(num_samples=400, **kwargs)
    drawn = sampling(Tied(), tf.zeros((1, 1)), [1], n_best=400)
    assert {*drawn.ids.numpy().ravel()} == {3, 4, 5, 6}


def test_the_best_samples_come_first(make_model, source_ids, searched, seed):
    model, limits = make_model(), [6, 4, 9]
    sampling = Sampling(seed=seed, num_samples=5)

    all_five = searched(sampling, model, source_ids, limits, n_best=5)
    two = searched(sampling, model, source_ids, limits, n_best=2)

    assert sampling.most_answers == 5
    assert (np.diff(all_five.scores, axis=1) <= 0).all()
    np.testing.assert_array_equal(two.ids, all_five.ids[:, :2])


def test_scores_are_by_the_model_itself(
    make_model, source_ids, searched, scores_of, seed
):
    model = make_model(bias={PAD: 9.0})
    sampling = Sampling(seed=seed, temperature=3.0, num_samples=2)

    drawn = searched(sampling, model, source_ids, [6, 4, 9], n_best=2)

    expected = scores_of(model, drawn.ids)
    np.testing.assert_allclose(drawn.scores, expected, atol=1e-4)


@pytest.mark.parametrize("temperature", [0.001, 1000])
def test_extreme_temperatures(make_model, source_ids, searched, temperature):
    sampling = Sampling(temperature=temperature)

    drawn = searched(sampling, make_model(), source_ids, [6, 4, 9])

    assert np.isfinite(drawn.scores).all()


def test_length_limits_of_nothing_and_an_empty_batch(
    make_model, source_ids, searched
):
    model, sampling = make_model(), Sampling(num_samples=2)

    best = searched(sampling, model, source_ids, [0, 1, 0], n_best=2)
    np.testing.assert_array_equal(best.lengths, [[0, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(best.scores[0], [0, 0])

    none = searched(sampling, model, source_ids[:0], [], n_best=2)
    assert none.ids.shape == (0, 2, 0)


def test_config():
    assert Sampling(temperature=0.8, top_k=50, seed=1).get_config() == {
        "temperature": 0.8,
        "top_k": 50,
        "top_p": 1.0,
        "seed": 1,
        "num_samples": 1,
        "length_penalty": 1.0,
        "penalty_offset": 5.0,
        "ctc_weight": 0.0,
        "constraints": [],
    }


@pytest.mark.parametrize(
    "kwargs",
    [
        {"temperature": 0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_k": 2.0},
        {"top_k": True},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"top_p": math.nan},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": 0.5},
        {"num_samples": 0},
        {"num_samples": 10**9},
    ],
    ids=str,
)
def test_bad_fields(kwargs):
    (name, value), *_ = kwargs.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value}"):
        Sampling(**kwargs)


def test_more_answers_than_samples(make_model, source_ids):
    inputs = {"source_ids": source_ids}
    with pytest.raises(ValueError, match=r"from 1 to 1\. Received: n_best=2"):
        Sampling()(make_model(), inputs, [6, 4, 9], n_best=2)
