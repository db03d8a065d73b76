"""Which tokens of an item precede each of its hypotheses."""

from keras import ops


def next_ancestors(is_ancestor, batch, window=None):
    """Appends the last token of each hypothesis to those of its item.

    Args:
        is_ancestor: (B * K, P) bool, which of the P tokens that the item's
            hypotheses have had so far are those of each one, in their order.
        batch: int, B.
        window: int or None, how far back the mask reaches.

    Returns:
        - (B * K, P + K) bool;
        - the mask of self-attention, (B, K, P + K) bool.
    """
    rows = ops.shape(is_ancestor)[0]
    per_item = rows // ops.maximum(batch, 1)
    places = ops.arange(rows) % ops.maximum(per_item, 1)
    own = places[:, None] == ops.arange(per_item)
    is_ancestor = ops.concatenate([is_ancestor, own], axis=1)
    mask = is_ancestor
    if window is not None:
        later = ops.flip(ops.cast(is_ancestor, "int32"), axis=1)
        later = ops.flip(ops.cumsum(later, axis=1), axis=1)
        mask = ops.logical_and(is_ancestor, later <= window + 1)
    shape = (batch, per_item, ops.shape(is_ancestor)[1])
    return is_ancestor, ops.reshape(mask, shape)
