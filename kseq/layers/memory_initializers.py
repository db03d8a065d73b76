"""Initial values with which a neural Turing machine learns to copy.

With heads that start at the same slot copying is learned in a fraction of the
steps. Sharp heads, and an LSTM that forgets, make it hold for sequences that
are longer than those of training.
"""

from keras import ops

_FOCUS = 10.0  # logit of the slot at which all heads are before the first step
_SHARP = 3.0  # of the power of a head: one that idles stays where it is
_FORGET = -2.0  # besides the 1 of `lstm_step`: what must last is in the memory


def at_one_slot(shape, dtype=None):
    """Logits of the first weightings, (heads, slots)."""
    heads, slots = shape
    places = ops.zeros((heads,), "int32")
    return _FOCUS * ops.one_hot(places, slots, dtype=dtype or "float32")


def forgetful(shape, dtype=None):
    """Biases of an LSTM: input, forget, candidate and output gate."""
    gates = ops.array([0.0, _FORGET, 0.0, 0.0], dtype or "float32")
    return ops.repeat(gates, shape[0] // 4)


def sharp(heads, power):
    """An initializer of the biases of all heads.

    Args:
        heads: int.
        power: int, the place of the power among the values of a head.
    """

    def initializer(shape, dtype=None):
        size = shape[0] // heads
        of_a_head = ops.one_hot(power, size, dtype=dtype or "float32")
        return ops.tile(_SHARP * of_a_head, heads)

    return initializer
