"""Batches and examples of tasks that are drawn."""

import itertools

import numpy as np
import tensorflow as tf

from kseq.data import binary_batches, binary_examples
from kseq.data.algorithms import CopySequence

TASK = CopySequence(length=(1, 4), bits=3)


def batches_of(seed, count, task=TASK):
    batches = binary_batches(task, batch_size=3, seed=seed)
    return list(itertools.islice(batches.as_numpy_iterator(), count))


def sources(batches):
    return [inputs["source"] for inputs, _, _ in batches]


def assert_same(batches, others):
    for one, other in zip(batches, others, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def test_the_seed_decides():
    one = batches_of(seed=1, count=6)
    assert_same(one, batches_of(seed=1, count=6))
    other = batches_of(seed=2, count=6)
    assert [b.shape for b in sources(one)] != [b.shape for b in sources(other)]


def test_a_batch_is_that_of_the_task():
    """In a graph and eagerly."""
    for place, (inputs, targets, weights) in enumerate(batches_of(5, count=2)):
        drawn = TASK.sequences(3, tf.constant([5, place]))
        np.testing.assert_array_equal(inputs["source"], drawn.inputs)
        np.testing.assert_array_equal(targets, drawn.targets)
        np.testing.assert_array_equal(weights, drawn.weights)


def test_the_shapes_are_known_but_for_the_length():
    batches = binary_batches(TASK, batch_size=3, seed=1)
    inputs, targets, weights = batches.element_spec
    assert inputs["source"].shape.as_list() == [3, None, 4]
    assert targets.shape.as_list() == [3, None, 3]
    assert weights.shape.as_list() == [3, None]
    assert batches.cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_restored_iterator_resumes_at_its_position(tmp_path):
    expected = batches_of(seed=1, count=5)
    iterator = iter(binary_batches(TASK, batch_size=3, seed=1))
    for _ in range(3):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "at_3"))

    again = iter(binary_batches(TASK, batch_size=3, seed=1))
    tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
    found = [
        tf.nest.map_structure(lambda part: part.numpy(), next(again))
        for _ in range(2)
    ]
    assert_same(found, expected[3:])


def test_examples_are_sequences_in_an_order():
    examples = binary_examples(TASK, count=20, seed=1)
    assert len(examples) == 20
    for inputs, targets, weights in examples:
        assert inputs.shape == (len(weights), 4)
        assert targets.shape == (len(weights), 3)
    few = binary_examples(TASK, count=3, seed=1)
    assert_same(few, examples[:3])


def test_examples_are_none_of_training():
    task = CopySequence(length=(4, 4), bits=8)
    examples = binary_examples(task, count=40, seed=1)
    examples = {example.targets.tobytes() for example in examples}
    assert len(examples) == 40
    trained = batches_of(seed=1, count=20, task=task)
    for _, targets, _ in trained:
        assert not examples & {row.tobytes() for row in targets}


def test_few_shapes_are_padded_at_the_end():
    few = binary_batches(TASK, batch_size=3, seed=1, max_shapes=2)
    drawn = batches_of(seed=1, count=12)
    found = set()
    for batch, expected in zip(few, drawn, strict=False):
        steps = expected[-1].shape[1]
        for part, one in zip(
            tf.nest.flatten(batch), tf.nest.flatten(expected), strict=True
        ):
            np.testing.assert_array_equal(part[:, :steps], one)
            assert not part[:, steps:].numpy().any()
        found.add(tuple(part.shape for part in tf.nest.flatten(batch)))
    assert found == {
        tuple(spec.shape for spec in tf.nest.flatten(shape))
        for shape in few.shapes
    }
    assert len(found) == 2
