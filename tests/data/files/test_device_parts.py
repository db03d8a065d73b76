import functools
import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import training_batches
from kseq.data.files.device_parts import distribute, read_in_parts
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.stream_positions import numbered_batches
from kseq.data.running_text.running_text import running_text_batches
from kseq.data.text.tokenized_pairs import TokenizedPairs
from tests.slow import slow


class CountingArray(RaggedArray):
    """Records the numbers of the rows that are read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.read = []

    def padded(self, numbers, width):
        def record(numbers):
            self.read.extend(numbers.tolist())
            return numbers

        numbers = tf.numpy_function(record, [numbers], numbers.dtype)
        numbers.set_shape([None])
        return super().padded(numbers, width)


def counted_pairs(count=300):
    """Each row has its own number as its first id."""
    sides = []
    for seed in (1, 2):
        lengths = np.random.default_rng(seed).integers(1, 17, count)
        offsets = np.cumsum([0, *lengths])
        values = np.full(offsets[-1], 4, np.int32)
        values[offsets[:-1]] = 4 + np.arange(count)
        sides.append(CountingArray(values, offsets))
    return TokenizedPairs(*sides, (count,), SimpleNamespace())


def batches_of(pairs):
    return training_batches(pairs, batch_tokens=150, max_length=15, seed=3)


@functools.cache
def usual():
    """Batches that are only read: to trace them takes half a second."""
    return batches_of(counted_pairs())


@functools.cache
def labels_of_usual(count):
    return labels_of(usual(), count)


def labels_of(batches, count):
    return [labels.numpy() for _, labels, _ in batches.take(count)]


def part_of(batch, device, devices):
    """All but the last devices have the same number of rows."""
    size = -(-len(batch) // devices)
    return batch[device * size : (device + 1) * size]


@pytest.mark.parametrize(
    ("hosts", "devices"), [slow(2, 2), (2, 4), slow(3, 3), slow(1, 2)]
)
def test_a_host_reads_only_the_rows_of_its_devices(hosts, devices):
    steps, read_ahead = 20, 60
    whole = labels_of_usual(steps + read_ahead)
    for host in range(hosts):
        pairs = counted_pairs()
        own = range(host, devices, hosts)
        expected = [part_of(b, d, devices) for b in whole for d in own]
        context = tf.distribute.InputContext(hosts, host, devices)
        parts = batches_of(pairs).parts(context)
        for side in (pairs.source, pairs.target):
            side.read.clear()  # an example of each shape
        found = labels_of(parts, steps * len(own))
        for one, other in zip(found, expected, strict=False):
            np.testing.assert_array_equal(one, other)

        allowed = Counter(row - 4 for part in expected for row in part[:, 0])
        for side in (pairs.source, pairs.target):
            assert len(side.read) >= sum(map(len, found))
            assert Counter(side.read) <= allowed


@pytest.mark.parametrize("kind", ["text", "running text", "numbers"])
def test_devices_get_what_tensorflow_would_give_them(kind, two_devices):
    if kind == "text":
        batches = usual()
    elif kind == "running text":
        batches = running_text_batches(
            np.arange(4, 204, dtype=np.int32), batch_size=6, length=9, seed=4
        )
    else:
        batches = numbered_batches(lambda n: (n + tf.range(3, dtype=tf.int64),))
    both = (
        distribute(batches, two_devices),
        # Read to its end: TensorFlow's may crash if it is deleted before.
        two_devices.experimental_distribute_dataset(batches.take(12)),
    )
    assert both[0].element_spec == both[1].element_spec
    own = itertools.islice(both[0], 12)
    for pair in zip(own, both[1], strict=True):
        for one, other in zip(*map(tf.nest.flatten, pair), strict=True):
            parts = map(two_devices.experimental_local_results, (one, other))
            for a, b in zip(*parts, strict=True):
                np.testing.assert_array_equal(a, b)


def test_an_iterator_is_deleted_while_it_reads(two_devices):
    """The process would crash."""

    def read(rows, others):
        matrix = tf.random.stateless_uniform([300, 300], [1, 2])
        for _ in range(3):  # which takes 20 ms
            matrix = tf.linalg.inv(matrix)
        return rows + tf.cast(matrix[0, 0] * 0, tf.int64)

    rows = tf.data.Dataset.range(4).batch(4).repeat()
    batches = read_in_parts(rows.map(lambda rows: (rows, ())), read)
    for _ in range(4):
        next(iter(distribute(batches, two_devices)))


def test_other_data_sets_are_not_changed(two_devices):
    batches = tf.data.Dataset.range(4).batch(2)
    assert distribute(batches, two_devices) is batches
    batches = numbered_batches(lambda number: (number[None],))
    assert distribute(batches, tf.distribute.get_strategy()) is batches


def test_parts_of_few_rows_may_be_empty():
    rows = tf.data.Dataset.from_tensors(([1, 2, 3], 10))
    batches = read_in_parts(rows, lambda rows, factor: rows * factor)
    context = tf.distribute.InputContext(1, 0, 4)
    found = [
        part.tolist() for part in batches.parts(context).as_numpy_iterator()
    ]
    assert found == [[10], [20], [30], []]
    assert next(batches.as_numpy_iterator()).tolist() == [10, 20, 30]
