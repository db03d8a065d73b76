import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, UNK
from kseq.data import (
    DataError,
    TextPreprocessor,
    Tokenizer,
    denoising_batches,
    tokenize_pairs,
)
from kseq.data.text import denoising_batches as module
from kseq.data.text.denoising_batches import (
    MASKED,
    infill,
    shuffle_sentences,
)

TEXTS = [f"{n} is one. {n + 1} is next! " + "And more " * n for n in range(12)]
ANSWERS = [f"{n}?" for n in range(12)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS + ANSWERS, 300)


@pytest.fixture(scope="module")
def pairs(tokenizer):
    texts = tf.data.Dataset.from_tensor_slices((TEXTS, ANSWERS))
    return tokenize_pairs(texts, TextPreprocessor(tokenizer), tokenizer)


def batches(pairs, tokenizer, **kwargs):
    options = {"batch_tokens": 256, "max_length": 64, "seed": 1, **kwargs}
    return denoising_batches(pairs, tokenizer, **options)


def taken(found, count):
    return [
        (inputs["source_ids"].numpy(), labels.numpy(), weights.numpy())
        for inputs, labels, weights in itertools.islice(found, count)
    ]


@pytest.fixture(scope="module")
def many(pairs, tokenizer):
    """Noisy and whole texts of batches that have each text several times."""
    return list(rows_of(taken(batches(pairs, tokenizer), 60)))


def rows_of(found):
    """Noisy and whole texts, padding left out."""
    for noisy, labels, weights in found:
        for each in zip(noisy, labels, weights, strict=True):
            if each[2].any():
                yield tuple(x[x != PAD].tolist() for x in each[:2])


def test_labels_are_the_texts_and_all_are_read(many, tokenizer):
    rows = sorted({tuple(row) for _, row in many})
    # All at once: each call takes milliseconds.
    padded = np.transpose([*itertools.zip_longest(*rows, fillvalue=PAD)])
    found = {text.decode() for text in tokenizer.detokenize(padded).numpy()}
    assert found == {text.strip() for text in TEXTS + ANSWERS}


def test_sentences_are_whole_and_spans_one_unknown_each(many, tokenizer):
    """The pieces that are left stand in a sentence in their order."""
    changed = left = total = 0
    for noisy, text in many:
        assert noisy[-1] == END
        assert (UNK, UNK) not in itertools.pairwise(noisy)
        assert len(noisy) <= len(text)
        kept = [i for i in noisy if i not in (UNK, END)]
        counts = np.bincount(text, minlength=tokenizer.vocab_size)
        assert (np.bincount(kept, minlength=len(counts)) <= counts).all()
        left, total = left + len(kept), total + len(text) - 1
        changed += noisy != text
    assert changed
    assert abs(1 - left / total - MASKED) < 0.03


def test_the_noise_of_a_text_depends_on_nothing_else(
    pairs, tokenizer, monkeypatch
):
    """Each text once, in small short batches and in large wide ones."""
    monkeypatch.setattr(module, "_DRAWS", 1)
    large = {"batch_tokens": 4096, "max_shapes": 1}
    small, large = (
        {(tuple(text), tuple(noisy)) for noisy, text in rows_of(rows)}
        for rows in (
            taken(batches(pairs, tokenizer), 60),
            taken(batches(pairs, tokenizer, **large), 6),
        )
    )
    assert small == large
    assert len(small) == len(TEXTS + ANSWERS)


def test_each_time_and_seed_has_its_own_noise(many, pairs, tokenizer):
    longest = max((text for _, text in many), key=len)
    noisy = [tuple(noise) for noise, text in many if text == longest]
    assert len(set(noisy)) == len(noisy) > 3
    again, other = (
        list(rows_of(taken(batches(pairs, tokenizer, seed=seed), 2)))
        for seed in (1, 2)
    )
    assert many[: len(again)] == again
    assert many[: len(other)] != other


def test_infilling_with_a_pencil():
    ids = tf.constant([[7, 8, 9, 10, END, PAD], [7, 8, END, PAD, PAD, PAD]])
    starts = np.ones((2, 6), "float32")
    starts[0, 1] = starts[1, 1] = 0  # a span begins at the second piece
    lengths = np.full((2, 6), 0.2, "float32")  # of two pieces
    found = infill(ids, tf.constant(starts), tf.constant(lengths))
    assert found.numpy().tolist() == [
        [7, UNK, 10, END, PAD, PAD],
        [7, UNK, END, PAD, PAD, PAD],
    ]


def test_sentences_with_a_pencil():
    ids = tf.constant([[7, 5, 8, 9, 5, 6, END, PAD], [7, 8, END] + [PAD] * 5])
    stops = tf.constant([False] * 5 + [True] + [False] * 4)
    random = np.zeros((2, 8), "float32")
    random[0, :3] = 0.5, 0.7, 0.1  # three sentences: third, first, second
    shuffled = shuffle_sentences(ids, stops, tf.constant(random))
    assert shuffled.numpy().tolist() == [
        [6, 7, 5, 8, 9, 5, END, PAD],
        [7, 8, END] + [PAD] * 5,
    ]


def test_nothing_to_learn_from(pairs, tokenizer):
    with pytest.raises(DataError, match="max_length=1 pieces"):
        batches(pairs, tokenizer, max_length=1)


def test_two_vocabularies_are_refused(pairs):
    other = Tokenizer.train(ANSWERS, 100, "char")
    with pytest.raises(DataError, match="--pretraining-steps 0"):
        batches(pairs, other)
