"""Inputs, some at a time."""

_SIZE = 4096  # answers that are held at once with all that is known of them


def chunks(inputs):
    """Yields parts of a list, in order; one that is empty has none.

    What is kept of the answers to one part is for the caller to choose, so
    that the rest of them does not fill the memory.
    """
    for start in range(0, len(inputs), _SIZE):
        yield inputs[start : start + _SIZE]
