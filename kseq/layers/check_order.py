"""A check of the order of recurrence and attention in a decoder."""


def check_order(attention, order, input_feeding):
    """Raises an error unless the arguments of a decoder fit each other.

    Args:
        attention: an attention layer, or None.
        order: str.
        input_feeding: bool.

    Raises:
        ValueError: if `order` is unknown, or if input feeding has no attention
            in the order of Luong, or if an attention that reads the weights
            of the last step would not get them.
    """
    if order not in ("luong", "bahdanau"):
        raise ValueError(
            f'order must be "luong" or "bahdanau". Received: order={order!r}'
        )
    received = f"Received: attention={attention}, order={order!r}"
    if input_feeding and (attention is None or order != "luong"):
        raise ValueError(
            f'input_feeding needs attention and order="luong". {received}'
        )
    reads_last = getattr(attention, "reads_last_weights", False)
    if reads_last and order == "luong" and not input_feeding:
        raise ValueError(
            "This attention reads the weights of the last step: set "
            f'order="bahdanau" or input_feeding=True. {received}, '
            f"input_feeding={input_feeding}"
        )
