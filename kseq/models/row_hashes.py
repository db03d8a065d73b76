"""Random numbers of rows, which depend on the row and on no other."""

from keras import ops

from kseq.ops.masks import range_of

_MASK = 2**32 - 1


def random_of_rows(ids, seed, step):
    """Random numbers of tokens, which depend on their row and on no other.

    A row has the same ones on every device, in every micro-batch and with any
    padding. They are those of a hash function.

    Args:
        ids: (B, T) int, padded with PAD.
        seed: int.
        step: () int, for other numbers at each step.

    Returns:
        (B, T) float32 in [0, 1).
    """
    places = range_of(ops.shape(ids)[1], "int64") + 1
    return random_of_hashes(hash_rows(ids, seed, step)[:, None], places)


def hash_rows(ids, seed, step):
    """A hash of each row, (B,) int64; see `random_of_rows`."""
    ids = ops.cast(ids, "int64")
    places = _hash(range_of(ops.shape(ids)[1], "int64") + 1)
    rows = ops.sum(ops.bitwise_and(ids * places, _MASK), axis=1)  # PAD is 0
    key = _hash(ops.convert_to_tensor(seed, "int64"))
    key = _hash(ops.bitwise_xor(ops.cast(step, "int64"), key))
    return _hash(ops.bitwise_xor(rows, key))


def random_of_hashes(hashes, places):
    """Numbers in [0, 1), float32, of hashes and int64 that broadcast."""
    bits = _hash(ops.bitwise_xor(hashes, _hash(places)))
    return ops.cast(ops.right_shift(bits, 8), "float32") / 2**24


def _hash(x):
    """Mixes the lower 32 bits of int64."""
    x = ops.bitwise_and(x, _MASK)
    for _ in range(2):  # the products have less than 63 bits
        x = ops.bitwise_xor(x, ops.right_shift(x, 16)) * 0x45D9F3B
        x = ops.bitwise_and(x, _MASK)
    return ops.bitwise_xor(x, ops.right_shift(x, 16))
