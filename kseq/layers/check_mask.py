"""A mask has a value for each position of what it masks."""


def check_mask(name, mask, *shape):
    """Raises ValueError unless a mask has a shape: another would broadcast.

    One of (1, ..., S) is that of all rows.

    Args:
        name: str, of the argument.
        mask: tensor.
        *shape: int, or anything else where it is not static.
    """
    given = getattr(mask, "shape", None)
    if given is not None and len(given) == len(shape):
        *leading, last = zip(given, shape, strict=True)
        has_rows = all(
            one == 1 or may_be_equal(one, size) for one, size in leading
        )
        if has_rows and may_be_equal(*last):
            return
    received = type(mask).__name__ if given is None else tuple(given)
    raise ValueError(
        f"{name} must have a value for each position, {shape}. "
        f"Received: {received}"
    )


def may_be_equal(first, second):
    """Whether two sizes are the same, or one of them is not static."""
    are_static = isinstance(first, int) and isinstance(second, int)
    return not are_static or first == second
