import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import DataError
from kseq.data.files import shuffled_batches as module
from kseq.data.files.shuffled_batches import shuffled_batches, stored_sizes
from kseq.data.files.stream_positions import position_after, starting_at
from tests.slow import slow


def stream(lengths, counts=None, budget=64, seed=1, **options):
    """Batches whose inputs are the numbers of their examples."""

    def batch(numbers, lengths):
        weight = tf.ones_like(numbers, tf.float32)
        return numbers, tf.convert_to_tensor(lengths), weight

    return shuffled_batches(
        counts or (len(lengths),),
        stored_sizes(lengths),
        batch,
        budget=budget,
        seed=seed,
        **options,
    )


@functools.cache
def usual(count, **options):
    """A stream that is only read: to trace one takes half a second."""
    return stream(lengths_of(count), **options)


@functools.cache
def in_windows(**options):
    """A stream of 300 examples in windows of 50."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 50)
        return stream(lengths_of(300), **options)


def lengths_of(count):
    return np.random.default_rng(count).integers(1, 17, count)


def read(batches, count=None, until=None):
    """The numbers of the examples with weight, in the order of batches."""
    found = []
    for numbers, _, weights in batches.take(-1 if count is None else count):
        found += numbers.numpy()[weights.numpy() > 0].tolist()
        if until is not None and len(found) >= until:
            break
    return found


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 50)


@pytest.mark.parametrize(
    ("count", "max_shapes"),
    [(1, 3), (2, None), slow(7, 3), (500, None), (500, 3)],
)
def test_each_epoch_has_each_example_once(count, max_shapes):
    batches = usual(count, max_shapes=max_shapes)
    found = read(batches, until=3 * count)
    epochs = [found[at : at + count] for at in range(0, 3 * count, count)]
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs)
    if count > 7:  # not in one batch
        assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("max_shapes", [None, 3])
def test_each_epoch_of_several_windows(max_shapes):
    """An epoch of 300 examples has six windows, of 50."""
    found = read(in_windows(max_shapes=max_shapes), until=600)
    assert sorted(found[:300]) == sorted(found[300:]) == list(range(300))


def test_the_order_of_the_file_is_not_that_of_training(small_windows):
    """Each part of an epoch has its share of each part of the file."""
    count = 2000
    found = read(stream(lengths_of(count)), until=count)
    for place in range(0, count, 250):
        part = np.array(found[place : place + 250])
        assert 0.38 < np.mean(part < count // 2) < 0.62


@pytest.mark.parametrize("max_shapes", [None, 3])
def test_batches_hold_the_budget(max_shapes):
    lengths = lengths_of(500)
    batches = usual(500, max_shapes=max_shapes)  # of 64
    used = []
    for numbers, _, _ in batches.take(200):
        longest = lengths[numbers.numpy()].max()
        assert len(numbers) == 1 or len(numbers) * longest <= 64
        used.append(lengths[numbers.numpy()].sum() / 64)
    assert np.mean(used) > (0.85 if max_shapes is None else 0.75)


def test_an_example_over_the_budget_is_a_batch():
    batches = stream(np.array([100, 3, 3, 100]), budget=8)
    sizes = {tuple(sorted(b.numpy())) for b, _, _ in batches.take(40)}
    assert sizes == {(0,), (3,), (1, 2)}


def test_examples_of_no_length_are_left_out():
    lengths = np.array([4, 0, 2, 0, 3])
    for max_shapes in (None, 2):
        batches = stream(lengths, max_shapes=max_shapes)
        assert set(read(batches, until=40)) == {0, 2, 4}


@pytest.mark.parametrize("lengths", [[], [0, 0]])
def test_nothing_to_train_on_is_an_error(lengths):
    with pytest.raises(DataError, match="no example to train on"):
        stream(np.array(lengths, np.int64))


def test_batches_of_shapes_are_full():
    """What fills them has no weight."""
    lengths = lengths_of(500)
    batches = usual(500, max_shapes=3)
    rows = {spec[1].shape: spec[0].shape[0] for spec in batches.shapes}
    assert len(rows) == 1  # lengths have one axis
    full = {spec[0].shape[0] for spec in batches.shapes}
    repeated = total = 0
    for numbers, shape, weights in batches.take(100):
        assert len(numbers) in full
        assert lengths[numbers.numpy()].max() <= shape.numpy()[0]
        repeated += np.count_nonzero(weights.numpy() == 0)
        total += len(numbers)
    assert 0 < repeated < 0.1 * total


@pytest.mark.parametrize(
    ("weights", "max_shapes"),
    [((), None), ((1.0, 3.0), 3), slow((), 3), slow((1.0, 3.0), None)],
)
def test_every_position_is_found(small_windows, weights, max_shapes):
    lengths, options = lengths_of(230), {"counts": (80, 150)}
    options |= {"weights": weights, "max_shapes": max_shapes}
    batches = stream(lengths, **options)
    whole = [b.numpy().tolist() for b, _, _ in batches.take(90)]
    for steps in ((1, 1, 1), (7, 33, 20)):
        position = 0
        for count in steps:
            position = position_after(batches, position, count)
        rest = starting_at(batches, position).take(12)
        found = [b.numpy().tolist() for b, _, _ in rest]
        assert found == whole[sum(steps) :][:12]


def test_corpora_have_their_weights(small_windows):
    counts, weights = (20, 400), (3.0, 1.0)
    batches = stream(lengths_of(420), counts, weights=weights)
    found = np.array(read(batches, until=1600))
    assert 0.7 < np.mean(found < 20) < 0.8
    # The epochs of each are its own.
    small, large = found[found < 20].tolist(), found[found >= 20].tolist()
    assert len(set(large[:370])) == 370
    assert {small[: 20 * 8].count(number) for number in range(20)} <= {
        6,
        7,
        8,
        9,
        10,
    }


def test_an_empty_corpus_is_never_drawn():
    batches = stream(lengths_of(30), (0, 30, 0), weights=(1.0, 1.0, 2.0))
    assert set(read(batches, until=90)) == set(range(30))


def test_seeds_differ(small_windows):
    """Also in the examples that are in the first window."""
    known = read(in_windows(max_shapes=None), until=50)
    again, other = (
        read(stream(lengths_of(300), seed=s), until=50) for s in (1, 2)
    )
    assert known == again
    assert set(known) != set(other)


def test_batches_are_in_no_order_of_length():
    lengths = lengths_of(500)
    batches = usual(500, max_shapes=None).take(20)
    longest = [lengths[numbers.numpy()].max() for numbers, _, _ in batches]
    assert longest != sorted(longest)
    assert longest != sorted(longest, reverse=True)


def test_the_longest_do_not_always_meet():
    lengths = np.repeat(np.arange(1, 33), 8)
    met = set()
    for batch, _, _ in stream(lengths, budget=128).take(600):
        if lengths[batch.numpy()].max() >= 30:
            met.add(tuple(sorted(batch.numpy().tolist())))
    assert len(met) > 10


def test_positions_beyond_32_bits():
    """After a year of training."""
    batches = usual(500, max_shapes=None)
    rest = starting_at(batches, 2**40)
    assert sorted(set(read(rest, until=1500))) == list(range(500))
    assert position_after(batches, 2**40, 3) > 2**40


def test_a_user_s_data_set_is_skipped(capsys):
    batches = tf.data.Dataset.range(9).repeat()
    rest = starting_at(batches, position_after(batches, 3, 4))
    assert next(iter(rest)).numpy() == 7
    assert "Skipping 7 batches" in capsys.readouterr().err
    assert starting_at(batches, 0) is batches


def test_reading_does_not_depend_on_what_was_read_before():
    batches = usual(500, max_shapes=None)
    first = [b.numpy().tolist() for b, _, _ in batches.take(30)]
    again = [b.numpy().tolist() for b, _, _ in itertools.islice(batches, 30)]
    assert first == again


def test_trainings_in_one_process_are_not_warned_of_tracings(caplog):
    """Each of them has a stream of its own, which is traced once."""
    for seed in range(6):
        batches = stream(lengths_of(9), seed=seed)
        assert position_after(batches, 0, 1) > 0
    assert "retracing" not in caplog.text
