"""Compilation of the training step for all shapes of its batches."""

import os
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from kseq.terminal import progress


def compile_shapes(model, batches):
    """Compiles the training step with XLA for each shape of the batches.

    The shapes are compiled in parallel, by steps that change nothing, see
    `TrainFunction.compile_shape`; one after the other where several devices
    exchange gradients. Without XLA, or where shapes are not known, nothing is
    compiled.

    Args:
        model: `ExactModel`, compiled.
        batches: `tf.data.Dataset`, see `kseq.data.training_batches`.
    """
    shapes = getattr(batches, "shapes", ())
    if not shapes or not model.jit_compile:
        return
    model.make_train_function()
    strategy = model.distribute_strategy
    empty = strategy.experimental_distribute_dataset(_empty(batches))
    spec = iter(empty).element_spec

    def compile_shape(batch):
        try:
            model.train_function.compile_shape(batch, spec)
        except tf.errors.OpError:
            return  # The first step of this shape fails too, and explains it.

    threads = min(len(shapes), os.cpu_count() or 1)
    if strategy.num_replicas_in_sync > 1:
        threads = 1  # or they could wait for each other in a different order
    with (
        progress("Compiling the training step", len(shapes), "shapes") as done,
        ThreadPoolExecutor(threads) as pool,
    ):
        for _ in pool.map(compile_shape, empty):
            done(1)


def _empty(batches):
    """A batch of zeros of each shape, a data set of the same signature."""
    specs = tf.nest.flatten(batches.element_spec)
    shapes = map(tf.nest.flatten, batches.shapes)
    tables = [
        tf.constant([spec.shape.as_list() for spec in column], tf.int32)
        for column in zip(*shapes, strict=True)
    ]

    def zeros(number):
        parts = [
            tf.ensure_shape(tf.zeros(table[number], spec.dtype), spec.shape)
            for table, spec in zip(tables, specs, strict=True)
        ]
        return tf.nest.pack_sequence_as(batches.element_spec, parts)

    numbers = tf.data.Dataset.range(len(batches.shapes))
    return numbers.map(zeros).with_options(batches.options())
