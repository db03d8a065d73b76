"""The loop of a search, over the items that are not done."""

import tensorflow as tf

from kseq.decoding.put_rows import put_rows
from kseq.decoding.while_loop import INTEGER, while_loop

_LEAVE = 4  # items leave the batch when one in so many is done


def until_done(advance, search, memory, *, is_done, answers, may_part=True):
    """Repeats a step until all items are done; those that are done leave.

    A step costs what its rows cost, so a short answer does not wait for the
    longest one. Items leave several at a time, since it takes a copy of what
    the others have.

    Args:
        advance: callable (search, memory) -> search.
        search: nest of tensors (B * n, ...), n of each tensor, the n rows of
            an item consecutive. An axis that is empty at the start may grow.
        memory: nest whose tensors (B * n, ...) no step changes.
        is_done: callable search -> (B,) bool.
        answers: callable search -> nest of tensors (B, ...), wanted of all
            items when they are done. Zeros fill an axis that has grown.
        may_part: bool, whether `advance` may see a part of the batch.

    Returns:
        nest of `answers`, the items in their order.
    """
    memory, restored = _tensors_of(memory)

    def step(loop):
        return {**loop, "search": advance(loop["search"], restored(loop))}

    def some_are_left(loop):
        done = is_done(loop["search"])
        number = tf.size(done)
        enough = -(-number // _LEAVE) if may_part else number
        return tf.math.count_nonzero(done, dtype=tf.int32) < enough

    def leave(loop):
        loop = while_loop(some_are_left, step, loop)
        done = is_done(loop["search"])
        left = tf.where(~done)[:, 0]
        parts = {key: loop[key] for key in ("search", "memory", "places")}
        return {
            **_take(parts, left, tf.size(done)),
            "answers": put_rows(
                loop["answers"], loop["places"], answers(loop["search"])
            ),
        }

    start = {
        "search": search,
        "memory": memory,
        "places": tf.cast(tf.range(tf.size(is_done(search))), INTEGER),
        "answers": answers(search),
    }
    end = while_loop(lambda loop: tf.size(loop["places"]) > 0, leave, start)
    return end["answers"]


def _tensors_of(memory):
    """The tensors of a nest, and a function that puts them back."""
    leaves = tf.nest.flatten(memory)
    tensors = [leaf for leaf in leaves if tf.is_tensor(leaf)]

    def restored(loop):
        left = iter(loop["memory"])
        return tf.nest.pack_sequence_as(
            memory,
            [next(left) if tf.is_tensor(leaf) else leaf for leaf in leaves],
        )

    return tensors, restored


def _take(nest, items, size):
    """The rows of some of `size` items."""

    def take(tensor):
        rows = tf.shape(tensor)[0] // tf.maximum(size, 1)  # of an item
        places = items[:, None] * tf.cast(rows, INTEGER)
        places += tf.cast(tf.range(rows), INTEGER)
        return tf.gather(tensor, tf.reshape(places, (-1,)))

    return tf.nest.map_structure(take, nest)
