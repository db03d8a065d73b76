import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data import (
    DataError,
    TextPreprocessor,
    TokenizedPairs,
    Tokenizer,
    tokenize_pairs,
    training_batches,
)
from kseq.data.files.device_parts import distribute
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.stream_positions import position_after, starting_at
from kseq.data.text.piece_halves import piece_halves
from kseq.data.text.subword_dropout import SubwordDropout
from kseq.user_error import ArgumentError
from tests.data.conftest import SENTENCES

# 4 to 7 are letters, 8 is made of 4 and 5, 9 of 6 and 7, 10 of 8 and 9.
HALVES = np.zeros((11, 2), np.int32)
HALVES[8:] = (4, 5), (6, 7), (8, 9)
LETTERS = {8: (4, 5), 9: (6, 7), 10: (4, 5, 6, 7)}
WIDTH = 400


def texts_of(rows, halves=HALVES, *, rate=0.3, seed=1, longest=WIDTH):
    offsets = np.cumsum([0, *map(len, rows)])
    ids = RaggedArray(np.concatenate(rows).astype(np.uint16), offsets)
    return SubwordDropout(ids, halves, rate=rate, seed=seed, longest=longest)


def read(texts, numbers):
    """The ids of some texts, without padding; their lengths are right."""
    numbers = tf.constant(numbers, tf.int64)
    rows = [row[row != PAD] for row in texts.padded(numbers, WIDTH).numpy()]
    assert [len(row) for row in rows] == texts.lengths(numbers).numpy().tolist()
    return [tuple(row.tolist()) for row in rows]


def letters(row):
    return tuple(
        itertools.chain.from_iterable(LETTERS.get(i, (i,)) for i in row)
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_text_stays_the_same(kind, seed):
    """That of each piece alone, in every place, and of random texts."""
    rng = np.random.default_rng(seed)
    tokenizer = Tokenizer.train(SENTENCES, 310, kind)
    every = np.arange(1, tokenizer.vocab_size)
    rows = [every, *np.stack([every, every[::-1]], axis=1)]
    rows += [rng.choice(every, 40) for _ in range(20)]
    rows += tokenizer.tokenize(SENTENCES).to_list()
    halves = piece_halves(tokenizer.model, tokenizer.vocab_size)
    texts = texts_of(rows, halves, rate=0.6, longest=2000)

    padded = texts.padded(tf.range(len(rows), dtype=tf.int64), 2000)
    whole = tf.ragged.constant([list(row) for row in rows]).to_tensor(PAD)

    found, expected = map(tokenizer.detokenize, (padded, whole))
    assert found.numpy().tolist() == expected.numpy().tolist()
    # Of the first text, which has each piece once.
    kept = halves[every, 0] == 0
    counts = np.bincount(padded[0].numpy(), minlength=tokenizer.vocab_size)
    assert (counts[every][kept] >= 1).all()
    assert (counts[: 4 + 256] <= 1)[1:].all()  # control tokens and bytes
    assert np.count_nonzero(padded[0]) > len(every)


def test_each_piece_is_split_at_the_rate(seed):
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.1, 0.9)
    rows = [np.full(1, 10)] * 1000 + [np.full(20, 10)] * 50
    found = read(texts_of(rows, rate=rate), range(len(rows)))
    flat = np.array([i for row in found for i in row])
    assert {letters(row) for row in found} == {letters(row) for row in rows}

    total = 2000
    whole = np.count_nonzero(flat == 10)
    halves = np.isin(flat, [8, 9]).sum()
    assert abs(1 - whole / total - rate) < 0.06
    assert abs(1 - halves / (2 * (total - whole)) - rate) < 0.1
    # The halves of a piece are split independently of each other.
    both = sum(row == (8, 9) for row in found)
    split = sum(row != (10,) for row in found[:1000])
    assert abs(both / split - (1 - rate) ** 2) < 0.1


def test_texts_are_drawn_alone_and_anew_in_each_epoch():
    rows = [np.full(n % 13, 10) for n in range(1, 40)]
    rows = [row for row in rows if len(row)]
    count = len(rows)
    texts = texts_of(rows)
    epochs = [read(texts, range(n * count, (n + 1) * count)) for n in (0, 1, 7)]

    assert epochs[0] != epochs[1] != epochs[2]
    for number in (0, 3, count - 1):
        assert read(texts, [number + 7 * count]) == [epochs[2][number]]
    mixed = [3 + count, 5, 3, 2 + 7 * count]
    assert read(texts, mixed) == [
        *(epochs[1][3], epochs[0][5], epochs[0][3], epochs[2][2])
    ]
    assert read(texts_of(rows), range(count)) == epochs[0]
    assert read(texts_of(rows, seed=2), range(count)) != epochs[0]
    assert len({*read(texts_of([rows[9]] * 50), range(50))}) > 40


def test_a_text_that_becomes_too_long_is_not_split():
    rows = [[10, 4], [10, 10, 10, 10], [10] * 40]
    found = read(texts_of(rows, rate=0.99, longest=9), range(3))
    assert len(found[0]) > 2
    assert found[1:] == [tuple(row) for row in rows[1:]]


def test_without_anything_to_split():
    rows = [[4, 5], [3]]
    assert read(texts_of(rows, rate=0.99), [1, 0, 3]) == [(3,), (4, 5), (3,)]
    texts = texts_of(rows)
    none = tf.zeros(0, tf.int64)
    assert texts.padded(none, 5).shape == (0, 5)
    assert texts.lengths(none).shape == (0,)
    assert texts.padded(tf.zeros(2, tf.int64), 1).numpy().tolist() == [[4]] * 2


LINES = [f"{sentence} {n}" for n in range(8) for sentence in SENTENCES]


def batches_of(tokenizer, rate=0.5, lines=LINES, **options):
    options = {"batch_tokens": 512, "max_length": 90, "seed": 1, **options}
    both = TextPreprocessor(tokenizer), tokenizer
    pairs = tf.data.Dataset.from_tensor_slices((lines, lines[::-1]))
    pairs = tokenize_pairs(pairs, *both)
    return training_batches(pairs, subword_dropout=rate, **options)


@pytest.fixture(scope="module")
def batches(tokenizer):
    return batches_of(tokenizer)


def arrays(found, count):
    return [
        (inputs["source_ids"].numpy(), labels.numpy(), weights.numpy())
        for inputs, labels, weights in itertools.islice(found, count)
    ]


def test_each_epoch_has_each_pair_once_in_other_pieces(batches, tokenizer):
    pairs, rows, places, real = [], [], 0, 0
    for source, target, weights in arrays(batches, 40):
        assert max(source.size, target.size) <= 512
        is_new = weights.any(axis=1)
        texts = (tokenizer.detokenize(x[is_new]) for x in (source, target))
        pairs += zip(*(text.numpy().tolist() for text in texts), strict=True)
        rows += map(tuple, source[is_new].tolist())
        places += target.size
        real += np.count_nonzero(weights)
    for start in range(0, 3 * len(LINES), len(LINES)):
        epoch = pairs[start : start + len(LINES)]
        expected = zip(LINES, LINES[::-1], strict=True)
        assert sorted(epoch) == sorted(
            (a.encode(), b.encode()) for a, b in expected
        )
    assert real / places > 0.6
    assert len({*rows}) > 0.7 * len(rows)


def test_training_resumes_in_a_later_epoch(batches):
    whole = arrays(batches, 16)
    position = position_after(batches, 0, 13)
    assert position > len(LINES)
    rest = arrays(starting_at(batches, position), 3)
    for one, other in zip(rest, whole[13:], strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def test_devices_get_parts_of_the_same_batches(batches, two_devices):
    parts = distribute(batches, two_devices)
    for whole, both in zip(arrays(batches, 6), parts, strict=False):
        labels = two_devices.experimental_local_results(both[1])
        np.testing.assert_array_equal(np.concatenate(labels), whole[1])


@pytest.mark.slow
def test_a_huge_rate_keeps_all_pairs(tokenizer):
    lines = ["a", *LINES[:6]]
    rate = math.nextafter(1.0, 0.0)
    batches = batches_of(tokenizer, rate, lines=lines, max_length=60)
    texts = {
        text
        for source, _, _ in arrays(batches, 8)
        for text in tokenizer.detokenize(source).numpy().tolist()
    }
    assert texts == {line.encode() for line in lines}


@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan, math.inf])
def test_other_rates_are_refused(tokenizer, rate):
    with pytest.raises(ArgumentError, match=f"subword_dropout={rate}"):
        batches_of(tokenizer, rate)


def test_other_pieces_and_sources_are_refused(tokenizer):
    with pytest.raises(DataError, match=r"bpe and unigram\. Received: char"):
        batches_of(Tokenizer.train(LINES, 100, "char"))
    ids = RaggedArray(np.array([4, 3]), np.array([0, 2]))
    pairs = TokenizedPairs(ids, ids, (1,), TextPreprocessor(tokenizer))
    with pytest.raises(ArgumentError, match="needs pairs of texts"):
        training_batches(
            pairs, batch_tokens=9, max_length=9, seed=1, subword_dropout=0.1
        )
