"""The loops of a search: over its steps, and over groups of its items."""

import tensorflow as tf

# Of token ids and places in a loop: on a GPU, TensorFlow keeps and computes
# int32 in the memory of the host.
INTEGER = tf.int64

_LEAVE = 4  # items leave the batch when one in this many is done
_GROUP = (8, 32)  # items: fewer take longer each, more are no faster
# A batch of more is one for a GPU, which takes as long for few items: `kseq
# predict` makes no larger one on a CPU, unless told to.
_MANY = 128


def arange(*limits):
    """`tf.range` cast to INTEGER, without a copy of the limits from a GPU."""
    return tf.cast(tf.range(*limits), INTEGER)


def while_loop(condition, body, start):
    """`while condition(x): x = body(x)` in the graph, for tensors that grow.

    An axis whose size is 0 at the start, as the length of a cache, may have
    any size later, and the batch may have any size. All other static sizes
    stay static because the layers in `body` need them.

    Args:
        condition: callable, x -> bool scalar.
        body: callable, x -> x.
        start: nest of tensors, batch first, the first x.

    Returns:
        The last x.
    """

    def shape(tensor):
        if tensor.shape.rank == 0:
            return tensor.shape
        return tf.TensorShape([None, *(n or None for n in tensor.shape[1:])])

    return tf.while_loop(
        condition,
        lambda x: [body(x)],
        [start],
        shape_invariants=[tf.nest.map_structure(shape, start)],
    )[0]


def scatter_rows(nest, places, parts):
    """The same tensors with different rows at some places.

    Args:
        nest: tensors (B, ...).
        places: (N,) int64, different ones.
        parts: the same nest of tensors (N, ...). Zeros fill an axis that is
            shorter than in the other tensor.

    Returns:
        nest of tensors (B, ...).
    """

    def put(old, new):
        size = tf.shape(old)[0]
        sources = tf.tensor_scatter_nd_update(
            arange(size),
            places[:, None],
            tf.cast(size + tf.range(tf.size(places)), INTEGER),
        )
        both = tf.concat([_padded(old, new), _padded(new, old)], axis=0)
        rows = tf.gather(both, sources)
        same = zip(old.shape[1:], new.shape[1:], strict=True)
        return tf.ensure_shape(
            rows, (None, *(a if a == b else None for a, b in same))
        )

    return tf.nest.map_structure(put, nest, parts)


def _padded(tensor, other):
    """The tensor, every axis but the first at least as long as in the other."""
    # `tf.pad` of int64 has no kernel for a GPU.
    for axis in range(1, tensor.shape.rank):
        if tensor.shape[axis] is not None is not other.shape[axis]:
            size = max(other.shape[axis] - tensor.shape[axis], 0)
        else:
            size = tf.shape(other)[axis] - tf.shape(tensor)[axis]
            size = tf.maximum(size, 0)
        if not isinstance(size, int) or size > 0:
            shape = tf.unstack(tf.shape(tensor))
            shape[axis] = size
            padding = tf.zeros(shape, tensor.dtype)
            tensor = tf.concat([tensor, padding], axis=axis)
    return tensor


def decode_until_finished(
    advance, search, memory, *, is_done, answers, is_splittable=True
):
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
        is_splittable: bool, whether `advance` may see a part of the batch.

    Returns:
        nest of `answers`, the items in their order.
    """
    memory, restored = _tensors_of(memory)

    def step(loop):
        return {**loop, "search": advance(loop["search"], restored(loop))}

    def some_are_left(loop):
        done = is_done(loop["search"])
        number = tf.size(done)
        enough = -(-number // _LEAVE) if is_splittable else number
        return tf.math.count_nonzero(done, dtype=tf.int32) < enough

    def leave(loop):
        loop = while_loop(some_are_left, step, loop)
        done = is_done(loop["search"])
        left = tf.where(~done)[:, 0]
        parts = {key: loop[key] for key in ("search", "memory", "places")}
        return {
            **_take(parts, left, tf.size(done)),
            "answers": scatter_rows(
                loop["answers"], loop["places"], answers(loop["search"])
            ),
        }

    start = {
        "search": search,
        "memory": memory,
        "places": arange(tf.size(is_done(search))),
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
        places += arange(rows)
        return tf.gather(tensor, tf.reshape(places, (-1,)))

    return tf.nest.map_structure(take, nest)


def map_micro_batches(search, items, num_answers, is_splittable=True):
    """Searches the groups of a batch, in a graph at the same time.

    A batch of more than 128 items has two groups, a smaller one those of 8 to
    32 items.

    TensorFlow runs them on different processors as long as `search` has no
    stateful operation, such as the reading of a variable.

    Args:
        search: callable, `Items` of a group -> ids (B, N, T) int64 and numbers
            (B, N) float32.
        items: `Items` of the whole batch.
        num_answers: int, N.
        is_splittable: bool, whether `search` may see a part of the batch.

    Returns:
        The same of all items, in their order, PAD after shorter answers.
    """
    inputs = tf.nest.flatten(items.inputs)
    is_splittable = is_splittable and all(
        _is_batch(x, items.max_lengths) for x in inputs
    )
    if not is_splittable:
        return search(items)

    size = tf.size(items.max_lengths)
    half = -(-size // 2)
    group_size = tf.where(size > _MANY, half, tf.clip_by_value(half, *_GROUP))

    def next_group(loop):
        start = loop["start"]
        end = tf.minimum(start + group_size, size)

        def part(rows):
            if rows is None:
                return None
            if not tf.is_tensor(rows):
                rows = tf.convert_to_tensor(rows)
            return rows[start:end]

        group = tf.nest.map_structure(part, items)
        places = arange(start, end)
        return {
            "start": end,
            "answers": scatter_rows(loop["answers"], places, search(group)),
        }

    answers = (
        tf.zeros((size, num_answers, 0), INTEGER),
        tf.zeros((size, num_answers)),
    )
    start = {"start": tf.constant(0), "answers": answers}
    end = while_loop(lambda loop: loop["start"] < size, next_group, start)
    return end["answers"]


def _is_batch(tensor, lengths):
    """Whether it has a row per item; a number in a list has none."""
    shape = tf.TensorShape(getattr(tensor, "shape", ()))
    return bool(shape.rank) and shape[:1].is_compatible_with(lengths.shape)
