"""A sequence of vectors from nested lists, checked."""

import numpy as np

from kseq.data.files.data_error import DataError

_NO_NUMBERS = "OSUc"  # kinds of dtypes: objects, strings, complex numbers


def as_vectors(sequence, num_features: int) -> np.ndarray:
    """A sequence as an array.

    Args:
        sequence: (T, F) float array, or nested lists; T may be 0.
        num_features: F.

    Returns:
        (T, F) float32 array.

    Raises:
        DataError: if its vectors do not have `num_features` finite numbers.
    """
    shape = "lists that are not an array of numbers"
    array = np.zeros(())
    try:
        given = np.asarray(sequence)
        if given.dtype.kind not in _NO_NUMBERS:
            with np.errstate(over="ignore"):  # it becomes infinite, see below
                array = given.astype("float32")
                shape = f"the shape {array.shape}"
    except (TypeError, ValueError):
        pass
    if array.shape == (0,):
        array = array.reshape(0, num_features)
    if array.ndim != 2 or array.shape[1] != num_features:
        raise DataError(
            f"expected vectors of {num_features} numbers; found {shape}."
        )
    if not np.isfinite(array).all():
        raise DataError("expected finite numbers; found nan or infinity.")
    return array
