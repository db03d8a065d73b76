"""Absurd arguments of the functions that make batches: one message each."""

import math

import numpy as np
import pytest
import tensorflow as tf

from kseq import data
from kseq.data.algorithms import CopySequence

LINES = ["a rose is a rose", "is a rose"]
IDS = tf.ragged.constant([[[4, 5], [6]], [[7]]])
INTEGERS = (0, -1, 1.5, math.nan, 2**40, "x", None, [])
SEEDS = (1.5, math.nan, 2**70, "x", None, [])


@pytest.fixture(scope="module")
def tokenizer():
    return data.Tokenizer.train(LINES, 270)


@pytest.fixture(scope="module")
def functions(tokenizer):
    """Each with arguments that are valid."""
    both = data.TextPreprocessor(tokenizer), tokenizer
    corpus = tf.data.Dataset.from_tensor_slices((LINES, LINES))
    pairs = data.tokenize_pairs(corpus, *both)
    of_pairs = {"batch_tokens": 64, "max_length": 32, "seed": 1}
    of_pieces = {"batch_pieces": 64, "seed": 1}
    of_rows = {"batch_size": 2, "length": 3}
    features = data.StoredFeatures(
        ["a", "b"], np.ones((2, 4, 3)), data.FeaturePreprocessor(2, 2, 3)
    )
    return {
        "training_batches": ((pairs,), of_pairs),
        "denoising_batches": ((pairs, tokenizer), of_pairs),
        "evaluation_batches": ((corpus, *both), {"batch_tokens": 64}),
        "document_batches": ((IDS, ["a", "b"], ("a", "b")), of_pieces),
        "tagging_batches": ((IDS, [["a", "b"], ["a"]], "ab"), of_pieces),
        "piece_prediction_batches": ((IDS,), of_pieces),
        "masked_prediction_batches": ((IDS,), of_pieces),
        "labelled_batches": (
            (features, [0, 1], ["a", "b"], ("a", "b")),
            {"batch_tokens": 64, "seed": 1},
        ),
        "running_text_batches": ((np.arange(9),), of_rows | {"seed": 1}),
        "running_text_evaluation": ((np.arange(9),), of_rows),
        "binary_batches": (
            (CopySequence((1, 2)),),
            {"batch_size": 2, "seed": 1},
        ),
        "binary_examples": ((CopySequence((1, 2)),), {"count": 2, "seed": 1}),
    }


def test_numbers_out_of_range(functions):
    for name, (given, options) in functions.items():
        make = getattr(data, name)
        for option in options:
            for value in SEEDS if option == "seed" else INTEGERS:
                with pytest.raises(
                    ValueError, match=f"^{option} must be an in"
                ):
                    make(*given, **{**options, option: value})


def test_seeds_may_be_large_and_negative(functions):
    for name, (given, options) in functions.items():
        if "seed" in options:
            getattr(data, name)(*given, **{**options, "seed": -(2**40)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": (1.0, 2.0)}, "weights must have one number for each corp"),
        ({"weights": (0.0,)}, "weights must be positive and finite"),
        ({"weights": (math.nan,)}, "weights must be positive and finite"),
        ({"weights": "x"}, "weights must be positive and finite"),
        ({"subword_dropout": 1.0}, "subword_dropout must be in"),
        ({"subword_dropout": -0.1}, "subword_dropout must be in"),
        ({"subword_dropout": "x"}, "subword_dropout must be in"),
    ],
)
def test_other_arguments_of_training_batches(functions, options, message):
    given, valid = functions["training_batches"]
    with pytest.raises(ValueError, match=f"^{message}"):
        data.training_batches(*given, **valid, **options)


@pytest.mark.parametrize("size", [0, -1, 1.5, math.nan, "x", []])
def test_sizes_of_built_in_corpora(size):
    for name in ("brackets", "dates", "dispatch_reports", "journeys"):
        with pytest.raises(ValueError, match=r"^size must be an integer"):
            getattr(data, name)("train", size)
