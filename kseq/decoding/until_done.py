"""The loop of a search, over the items that are not done."""

import tensorflow as tf

from kseq.decoding.while_loop import while_loop

_LEAVE = 4  # items leave the batch when one in so many is done
_GROUP = (8, 32)  # items: fewer take longer each, more are no faster


def until_done(advance, search, memory, *, is_done, answers, may_leave=True):
    """Repeats a step until all items are done; those that are done leave.

    A large batch is searched in groups of its items, which TensorFlow runs at
    the same time on different processors. In a group, a step costs what its
    rows cost, so a short answer does not wait for the longest one. Items leave
    several at a time, since it takes a copy of what the others have.

    Args:
        advance: callable (search, memory) -> search. In a graph the groups run
            at the same time only if it has no stateful operation, such as the
            reading of a variable.
        search: nest of tensors (B * n, ...), n of each tensor, the n rows of
            an item consecutive. An axis that is empty at the start may grow.
        memory: nest whose tensors (B * n, ...) no step changes.
        is_done: callable search -> (B,) bool.
        answers: callable search -> nest of tensors (B, ...), wanted of all
            items when they are done. Zeros fill an axis that has grown.
        may_leave: bool, whether `advance` may see a part of the batch.

    Returns:
        nest of `answers`, the items in their order.
    """
    memory, restored = _tensors_of(memory)
    size = tf.size(is_done(search))

    def step(loop):
        return {**loop, "search": advance(loop["search"], restored(loop))}

    def some_are_left(loop):
        done = is_done(loop["search"])
        number = tf.size(done)
        enough = -(-number // _LEAVE) if may_leave else number
        return tf.math.count_nonzero(done, dtype=tf.int32) < enough

    def leave(loop):
        loop = while_loop(some_are_left, step, loop)
        done = is_done(loop["search"])
        left = tf.cast(tf.where(~done)[:, 0], tf.int32)
        parts = {key: loop[key] for key in ("search", "memory", "places")}
        return {
            **_take(parts, left, tf.size(done)),
            "answers": _put(
                loop["answers"], loop["places"], answers(loop["search"])
            ),
        }

    def answered(search, memory):
        start = {
            "search": search,
            "memory": memory,
            "places": tf.range(tf.size(is_done(search))),
            "answers": answers(search),
        }
        end = while_loop(lambda loop: tf.size(loop["places"]) > 0, leave, start)
        return end["answers"]

    if not may_leave:
        return answered(search, memory)

    group_size = tf.clip_by_value(-(-size // 2), *_GROUP)

    def next_group(loop):
        start = loop["start"]
        end = tf.minimum(start + group_size, size)
        found = answered(*_slice((search, memory), start, end, size))
        places = tf.range(start, end)
        return {"start": end, "answers": _put(loop["answers"], places, found)}

    start = {"start": tf.constant(0), "answers": answers(search)}
    end = while_loop(lambda loop: loop["start"] < size, next_group, start)
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


def _put(answers, places, parts):
    """The answers with other rows at some places."""

    def put(old, new):
        size = tf.shape(old)[0]
        sources = tf.tensor_scatter_nd_update(
            tf.range(size), places[:, None], size + tf.range(tf.size(places))
        )
        both = tf.concat([_padded(old, new), _padded(new, old)], axis=0)
        rows = tf.gather(both, sources)
        return tf.ensure_shape(rows, (None, *new.shape[1:]))

    return tf.nest.map_structure(put, answers, parts)


def _padded(tensor, other):
    """The tensor, every axis but the first at least as long as in the other."""
    missing = tf.maximum(tf.shape(other) - tf.shape(tensor), 0)
    padding = tf.stack([tf.zeros_like(missing), missing], axis=1)
    padding *= tf.cast(tf.range(tf.rank(tensor)) > 0, tf.int32)[:, None]
    return tf.pad(tensor, padding)


def _take(nest, items, size):
    """The rows of some of `size` items."""

    def take(tensor):
        rows = _rows(tensor, size)
        places = items[:, None] * rows + tf.range(rows)
        return tf.gather(tensor, tf.reshape(places, (-1,)))

    return tf.nest.map_structure(take, nest)


def _slice(nest, start, end, size):
    """The rows of the items from `start` to `end`, without a copy."""

    def part(tensor):
        rows = _rows(tensor, size)
        return tensor[start * rows : end * rows]

    return tf.nest.map_structure(part, nest)


def _rows(tensor, size):
    """The number of rows of each of `size` items."""
    return tf.shape(tensor)[0] // tf.maximum(size, 1)
