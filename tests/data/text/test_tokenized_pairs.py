"""The longest target of training bounds an answer."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import TextPreprocessor, tokenize_pairs, training_batches
from kseq.user_error import ArgumentError

# Of two blocks.
LINES = [f"{number} " + "ab " * (number % 23) for number in range(1100)]


def pairs_of(tokenizer, targets):
    pairs = tf.data.Dataset.from_tensor_slices((targets, targets))
    return tokenize_pairs(pairs, TextPreprocessor(tokenizer), tokenizer)


@pytest.fixture(scope="module")
def lengths(tokenizer):
    return tokenizer.tokenize(LINES).row_lengths().numpy() + 1


@pytest.mark.parametrize("max_length", [2, 9, 64, 10**6])
def test_it_is_the_length_of_the_longest_that_is_trained_on(
    tokenizer, lengths, max_length
):
    expected = max([n for n in lengths if n <= max_length], default=0)

    pairs = pairs_of(tokenizer, LINES)
    assert pairs.longest_target(max_length) == expected


def test_no_batch_of_training_has_a_longer_one(tokenizer):
    pairs = pairs_of(tokenizer, LINES[:200])
    batches = training_batches(pairs, batch_tokens=4096, max_length=30, seed=1)
    lengths = [np.sum(weights, 1).max() for *_, weights in batches.take(20)]

    assert pairs.longest_target(30) == max(lengths)


def test_without_a_target_it_is_0(tokenizer):
    assert pairs_of(tokenizer, [""]).longest_target(9) == 0


def test_limits_cut_no_pair_of_training(tokenizer):
    """Sources of 601 and 901 tokens, targets of 1, 2 and 702."""
    pairs = pairs_of(tokenizer, ["a", "a " * 700, ""])
    sources = pairs_of(tokenizer, ["a " * 600, "", "a " * 900]).source
    pairs = dataclasses.replace(pairs, source=sources)
    longest = pairs.longest_target(10**6)
    assert pairs.answer_limit(10**6) == longest + 1 > 700
    assert pairs.source_limit(10**6) > pairs.source_limit(700) > 600
    assert pairs.source_limit(500) == pairs.answer_limit(500) == 512


def test_nearly_all_targets_are_within_the_length_ratio(tokenizer):
    words = [f"{'a ' * n}a" for n in range(1, 2001)]
    pairs = tf.data.Dataset.from_tensor_slices((words, 2000 * ["a b"]))
    pairs = tokenize_pairs(pairs, TextPreprocessor(tokenizer), tokenizer)
    pairs = dataclasses.replace(pairs, source=pairs.target, target=pairs.source)
    (sources, targets), counts = pairs.all_lengths[0].T, pairs.all_lengths[1]
    for max_length in (100, 10**6):
        ratio = pairs.length_ratio(max_length)
        kept = np.maximum(sources, targets) <= max_length
        longer = (targets > ratio * sources + 5) & kept
        assert 0 <= counts[longer].sum() <= 0.001 * counts[kept].sum()
        longer = (targets > (ratio - 0.02) * sources + 5) & kept
        assert counts[longer].sum() > 0.001 * counts[kept].sum()


def test_a_length_ratio_is_above_0(tokenizer):
    assert pairs_of(tokenizer, LINES).length_ratio(0) == 0.01
    assert pairs_of(tokenizer, [""]).length_ratio(9) == 0.01


def test_ids_are_those_of_the_tokenizer(tokenizer):
    pairs = pairs_of(tokenizer, [*LINES, " ", "x" * 70_000])
    expected, _ = tokenizer.tokenize_with_end(LINES)
    for side in (pairs.source, pairs.target):
        assert side.gather(range(1100)).to_list() == expected.to_list()
    assert pairs.counts == (1100,)


def test_corpora_are_data_sets_of_pairs(tokenizer):
    texts = ["a", "b"]
    made = tf.data.Dataset.from_tensor_slices
    for corpora, received in [
        ((texts, texts), "list"),
        (made({"source": texts, "target": texts}), "'source'"),
        (made((texts, texts, texts)), r"\(TensorSpec"),
        (made((texts, texts)).batch(2), r"\(None,\)"),
    ]:
        with pytest.raises(ArgumentError, match=f"Received: .*{received}"):
            tokenize_pairs(corpora, TextPreprocessor(tokenizer), tokenizer)


def test_corpora_are_one_after_the_other(tokenizer):
    parts = [
        tf.data.Dataset.from_tensor_slices((texts, texts))
        for texts in (["a", "b"], [""], ["c"])
    ]
    both = TextPreprocessor(tokenizer), tokenizer
    pairs = tokenize_pairs(parts, *both)
    assert pairs.counts == (2, 0, 1)
    assert len(pairs.source) == 3
