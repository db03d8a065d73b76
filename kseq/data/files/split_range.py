"""The splits of a built-in corpus, as ranges of a stream of examples."""


def split_range(split: str, size: int | None, sizes: dict[str, int]) -> range:
    """The positions of a split in a stream of all splits, one after the other.

    Args:
        split: one of `sizes`.
        size: number of examples, at most and by default those of the split.
        sizes: of all splits, in their order.

    Raises:
        ValueError: there is no such split, or it is smaller.

    Example:
    >>> split_range("test", 2, {"train": 10, "test": 5})
    range(10, 12)
    """
    if split not in sizes:
        raise ValueError(
            f"split must be one of {', '.join(sizes)}. Received: {split=}"
        )
    most = sizes[split]
    size = most if size is None else size
    if not 0 < size <= most:
        raise ValueError(f"size must be 1 to {most}. Received: {size=}")
    splits = list(sizes)
    start = sum(sizes[name] for name in splits[: splits.index(split)])
    return range(start, start + size)
