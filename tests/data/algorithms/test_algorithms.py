"""The tasks of Graves et al. 2014, by definitions in plain Python."""

import dataclasses

import numpy as np
import pytest

from kseq.data.algorithms import (
    AssociativeRecall,
    BinarySequences,
    CopySequence,
    DynamicNgrams,
    PrioritySort,
    RepeatCopy,
)

BITS = 3
TASKS = {
    "copy": CopySequence(length=(2, 4), bits=BITS),
    "repeat_copy": RepeatCopy(length=(1, 3), repeats=(2, 4), bits=BITS),
    "recall": AssociativeRecall(items=(2, 4), vectors=2, bits=BITS),
    "ngrams": DynamicNgrams(length=12, order=3),
    "sort": PrioritySort(given=5, asked=3, bits=BITS),
}


def drawn(task, count=4, seed=1):
    sequences = task.sequences(count, (seed, 7))
    return BinarySequences(*(part.numpy() for part in sequences))


@pytest.mark.parametrize("name", TASKS)
def test_shapes_and_values(name):
    task = TASKS[name]
    inputs, targets, weights = drawn(task)
    assert {inputs.dtype, targets.dtype, weights.dtype} == {np.dtype("float32")}
    assert inputs.shape == (*weights.shape, task.input_dim)
    assert targets.shape == (*weights.shape, task.output_dim)
    assert {*targets.ravel()} == {*weights.ravel()} == {0, 1}
    assert (weights == weights[0]).all()
    assert np.isfinite(inputs).all()
    if name != "ngrams":  # nothing is shown where something is asked for
        asked = weights > 0
        assert not inputs[asked].any()
        assert not targets[~asked].any()


@pytest.mark.parametrize("name", TASKS)
def test_the_seed_decides(name):
    one, same, other = (drawn(TASKS[name], seed=seed) for seed in (1, 1, 2))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    rows = {row.tobytes() for row in one.targets}
    assert len(rows) > 1
    assert rows != {row.tobytes() for row in other.targets}


@pytest.mark.parametrize("name", TASKS)
def test_harder_sizes_are_for_the_same_model(name):
    task = type(TASKS[name])()
    for harder in task.harder().values():
        assert type(harder) is type(task)
        assert harder.input_dim == task.input_dim
        assert harder.output_dim == task.output_dim
    assert len({*task.harder().values()}) == len(task.harder())


def test_both_ends_of_a_size_are_drawn():
    lengths = {
        drawn(TASKS["copy"], count=1, seed=seed).weights.sum()
        for seed in range(40)
    }
    assert lengths == {2, 3, 4}


def test_a_copy_is_what_was_given():
    inputs, targets, weights = drawn(CopySequence(length=(4, 4), bits=BITS))
    np.testing.assert_array_equal(targets[:, 5:], inputs[:, :4, :BITS])
    expected = np.zeros((4, 9))
    expected[:, 4] = 1
    np.testing.assert_array_equal(inputs[:, :, BITS], expected)
    assert not inputs[:, 4, :BITS].any()
    assert weights[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("repeats", [1, 4, 5])
def test_copies_are_repeated_and_end(repeats):
    """Of the numbers 1 to 5 the mean is 3 and the variance is 2."""
    task = RepeatCopy((2, 2), (repeats, repeats), BITS, trained_repeats=(1, 5))
    inputs, targets, weights = drawn(task)
    copies = np.tile(inputs[:, :2, :BITS], (1, repeats, 1))
    np.testing.assert_array_equal(targets[:, 3:-1, :BITS], copies)
    marks = [0] * (3 + 2 * repeats) + [1]
    assert targets[:, :, BITS].tolist() == [marks] * 4
    assert not targets[:, -1, :BITS].any()
    assert weights[0].tolist() == [0, 0, 0] + [1] * (2 * repeats + 1)

    assert not inputs[:, :2, BITS:].any()
    asking = [0, 0, 0, 1, (repeats - 3) / 2**0.5]
    np.testing.assert_allclose(inputs[:, 2], [asking] * 4, atol=1e-6)


def test_the_number_of_copies_is_normalized_in_training():
    task = RepeatCopy()
    numbers = [
        drawn(dataclasses.replace(task, length=(1, 1), repeats=(n, n)), 1)
        for n in range(1, 11)
    ]
    numbers = [found.inputs[0, 1, -1] for found in numbers]
    assert np.mean(numbers) == pytest.approx(0, abs=1e-6)
    assert np.var(numbers) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("number", [2, 4])
def test_the_item_after_the_query_is_recalled(number):
    task = AssociativeRecall(items=(number, number), vectors=2, bits=8)
    inputs, targets, weights = drawn(task, count=8)
    places = set()
    for row, target in zip(inputs, targets, strict=True):
        flags = row[:, 8:].argmax(axis=1) + row[:, 8:].any(axis=1)
        # Each item has its flag before it, the query flags on both sides.
        assert flags.tolist() == [1, 0, 0] * number + [2, 0, 0, 2] + [0, 0]
        vectors = row[:, :8]
        assert not vectors[flags > 0].any()
        items = vectors[flags == 0].reshape(-1, 2, 8)
        items, query = items[:number], items[number]
        place = [item.tolist() for item in items].index(query.tolist())
        np.testing.assert_array_equal(target[-2:], items[place + 1])
        places.add(place)
    assert weights[0].tolist() == [0] * (3 * number + 4) + [1, 1]
    assert places <= {*range(number - 1)}
    assert number == 2 or len(places) > 1


def test_the_highest_priorities_come_in_order():
    inputs, targets, weights = drawn(TASKS["sort"])
    priorities = inputs[:, :5, BITS]
    assert (np.abs(priorities) <= 1).all() and (priorities < 0).any()
    for row, target, keys in zip(inputs, targets, priorities, strict=True):
        first = sorted(range(5), key=lambda place: -keys[place])[:3]
        np.testing.assert_array_equal(target[6:], row[first, :BITS])
    flags = inputs[:, :, BITS + 1]
    assert flags.tolist() == [[0, 0, 0, 0, 0, 1, 0, 0, 0]] * 4
    assert weights[0].tolist() == [0] * 6 + [1] * 3


def test_the_next_bit_is_asked_for():
    inputs, targets, weights = drawn(TASKS["ngrams"])
    assert inputs.shape == (4, 11, 1)
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])
    assert weights[0].tolist() == [0] + [1] * 10  # a context has two bits


def test_the_best_prediction_counts_what_followed():
    task = TASKS["ngrams"]
    found = drawn(task)
    probabilities = task.best(found)
    for row, inputs, targets in zip(
        probabilities, found.inputs, found.targets, strict=True
    ):
        bits = [*inputs[:, 0], targets[-1, 0]]
        counts = {}
        for step in range(1, len(targets)):
            seen = counts.setdefault((bits[step - 1], bits[step]), [0, 0])
            expected = (seen[1] + 0.5) / (sum(seen) + 1)
            assert row[step, 0].numpy() == pytest.approx(expected)
            seen[int(bits[step + 1])] += 1


def test_the_best_prediction_costs_what_it_should(seed):
    """The same from models that NumPy draws: 128.5 bits, deviation 36."""
    task = DynamicNgrams()
    sequences = task.sequences(500, (seed, 0))
    ones = task.best(sequences).numpy()
    right = np.where(sequences.targets, ones, 1 - ones)
    cost = -np.log2(right[:, :, 0]) * sequences.weights.numpy()

    draw, rows = np.random.default_rng(seed), np.arange(3000)
    chances = draw.beta(0.5, 0.5, (3000, 32))
    counts = np.full((3000, 32, 2), 0.5)
    context, expected = draw.integers(0, 32, 3000), 0
    for _ in range(200 - 5):
        bit = (draw.random(3000) < chances[rows, context]).astype(int)
        seen = counts[rows, context]
        expected -= np.log2(seen[rows, bit] / seen.sum(axis=1)).mean()
        counts[rows, context, bit] += 1
        context = 2 * context % 32 + bit
    assert expected == pytest.approx(128.5, abs=4)
    assert cost.sum(axis=1).mean() == pytest.approx(expected, abs=9)


@pytest.mark.parametrize(
    ("task", "sizes"),
    [
        (CopySequence, {"length": (0, 3)}),
        (CopySequence, {"length": (4, 3)}),
        (CopySequence, {"length": 3}),
        (CopySequence, {"length": (1, 2.0)}),
        (CopySequence, {"bits": 0}),
        (RepeatCopy, {"repeats": (0, 1)}),
        (RepeatCopy, {"trained_repeats": None}),
        (AssociativeRecall, {"items": (1, 6)}),
        (AssociativeRecall, {"vectors": 0}),
        (DynamicNgrams, {"order": 1}),
        (DynamicNgrams, {"length": 5, "order": 6}),
        (PrioritySort, {"given": 3, "asked": 4}),
    ],
)
def test_wrong_sizes(task, sizes):
    with pytest.raises(ValueError, match=f"of {task.__name__} must be .*Recei"):
        task(**sizes)
