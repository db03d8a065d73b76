"""A large batch in groups of its items."""

import tensorflow as tf

from kseq.decoding.put_rows import put_rows
from kseq.decoding.while_loop import INTEGER, while_loop

_GROUP = (8, 32)  # items: fewer take longer each, more are no faster
# A batch of more is one for a GPU, which takes as long for few items: `kseq
# predict` makes no larger one on a CPU, unless told to.
_MANY = 128


def in_groups(search, items, num_answers, may_part=True):
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
        may_part: bool, whether `search` may see a part of the batch.

    Returns:
        The same of all items, in their order, PAD after shorter answers.
    """
    inputs = tf.nest.flatten(items.inputs)
    may_part = may_part and all(_is_batch(x, items.max_lengths) for x in inputs)
    if not may_part:
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
        places = tf.cast(tf.range(start, end), INTEGER)
        return {
            "start": end,
            "answers": put_rows(loop["answers"], places, search(group)),
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
