"""The longest target of training bounds an answer."""

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import TextPreprocessor, longest_target, training_batches

# Of two blocks.
LINES = [f"{number} " + "ab " * (number % 23) for number in range(1100)]


def pairs_of(targets):
    return tf.data.Dataset.from_tensor_slices((targets, targets))


@pytest.fixture(scope="module")
def lengths(tokenizer):
    return tokenizer.tokenize(LINES).row_lengths().numpy() + 1


@pytest.mark.parametrize("max_length", [2, 9, 64, 10**6])
def test_it_is_the_length_of_the_longest_that_is_trained_on(
    tokenizer, lengths, max_length
):
    expected = max([n for n in lengths if n <= max_length], default=0)

    assert longest_target(pairs_of(LINES), tokenizer, max_length) == expected


def test_no_batch_of_training_has_a_longer_one(tokenizer):
    pairs = pairs_of(LINES[:200])
    batches = training_batches(
        pairs,
        TextPreprocessor(tokenizer),
        tokenizer,
        batch_tokens=4096,
        max_length=30,
        seed=1,
    )
    lengths = [np.sum(weights, 1).max() for *_, weights in batches.take(20)]

    assert longest_target(pairs, tokenizer, 30) == max(lengths)


def test_without_a_target_it_is_0(tokenizer):
    assert longest_target(pairs_of([""]).take(0), tokenizer, 9) == 0
