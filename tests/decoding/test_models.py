"""The searches over the models that people train."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from kseq.decoding import BeamSearch, GreedySearch, Sampling
from kseq.layers import (
    BahdanauAttention,
    LocalAttention,
    LocationAwareAttention,
    LuongAttention,
)
from kseq.models import ConvSeq2Seq, LSTMSeq2Seq, Transformer
from kseq.ops import dot_energies
from tests.layers.test_own_score import CosineAttention, NegativeDistance
from tests.slow import slow

LIMITS = tf.constant([5, 3, 6])


def transformer(**kwargs):
    return Transformer(
        source_vocab_size=20,
        target_vocab_size=200,
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=8,
        ffn_dim=16,
        num_heads=2,
        **kwargs,
    )


def lstm(**kwargs):
    return LSTMSeq2Seq(
        source_vocab_size=20,
        target_vocab_size=200,
        embedding_dim=8,
        units=8,
        **kwargs,
    )


@pytest.fixture(
    params=[
        lambda: transformer(norm="pre"),
        slow(lambda: lstm(attention=LuongAttention("dot"), input_feeding=True)),
        slow(lambda: transformer(norm="post", window=2, positions="learned")),
        slow(lambda: lstm(attention=BahdanauAttention(8), order="bahdanau")),
        slow(
            lambda: lstm(
                attention=LocationAwareAttention(8, 3, kernel_size=3),
                order="bahdanau",
            )
        ),
        slow(lambda: lstm(attention=None)),
        slow(
            lambda: lstm(
                attention=LocalAttention(
                    "dot", window=2, alignment="monotonic"
                ),
                input_feeding=True,
            )
        ),
        slow(lambda: ConvSeq2Seq(20, 200, embedding_dim=8, units=8)),
    ],
    ids=[
        *("transformer", "luong", "windowed", "bahdanau"),
        *("location-aware", "plain", "local", "convolutional"),
    ],
)
def model(request, seed):
    """Untrained, but with logits far enough apart that none are tied."""
    model = request.param()
    for weight in model.trainable_variables:
        weight.assign(weight + tf.random.normal(weight.shape, stddev=0.5))
    return model


def test_searches_of_a_model(model, source_ids, traced, searched, scores_of):
    # Tracing takes longer than a search: the others are traced where models
    # are exported.
    searches = {
        "greedy": functools.partial(searched, GreedySearch(), model),
        "four": traced(BeamSearch(4), model, n_best=3),
        "drawn": functools.partial(
            searched, Sampling(num_samples=2), model, n_best=2
        ),
    }

    def search(*args):
        return {name: one(*args) for name, one in searches.items()}

    found = search(source_ids, LIMITS)

    best, greedy = found["four"].scores[:, :1], found["greedy"].scores
    assert np.all(best >= greedy - 1e-4)
    for best in found.values():
        expected = scores_of(model, best.ids)
        np.testing.assert_allclose(best.scores, expected, atol=1e-4)

    for name, alone in search(source_ids[1:2, :2], LIMITS[1:2]).items():
        width = alone.ids.shape[2]
        together = found[name].ids[1:2, :, :width]
        np.testing.assert_array_equal(together, alone.ids)
        np.testing.assert_allclose(
            found[name].scores[1:2], alone.scores, atol=1e-4
        )
    assert search(source_ids[:0], LIMITS[:0])["four"].ids.shape == (0, 3, 0)


@pytest.mark.parametrize(
    "attention",
    [
        CosineAttention(),
        slow(NegativeDistance(units=3)),
    ],
)
def test_beam_search_with_a_score_of_ones_own(
    attention, seed, source_ids, searched, scores_of
):
    """Hypotheses of one memory, scored as whole sequences are."""
    model = lstm(attention=attention, input_feeding=True)
    for weight in model.trainable_variables:
        weight.assign(weight + tf.random.normal(weight.shape, stddev=0.5))
    best = searched(BeamSearch(4), model, source_ids, LIMITS, n_best=3)

    assert type(model.attention) is type(attention)
    expected = scores_of(model, best.ids)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)
    assert np.all(best.scores[:, :-1] >= best.scores[:, 1:])
    # The score decides: with equal energies the same texts have other scores.
    model.attention.energies = lambda query, keys: (
        0 * dot_energies(query[..., :3], keys[..., :3])
    )
    other = scores_of(model, best.ids)
    assert np.max(np.abs(other - best.scores)) > 1e-3
