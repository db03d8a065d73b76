"""The weights of a model of another toolkit."""

import numpy as np

from kseq.user_error import UserError


def in_memory(tensors, most):
    """Copies tensors of a file, which may share their bytes.

    Args:
        tensors: iterable of names and arrays.
        most: int, bytes of all copies; those of a small file could fill the
            memory.

    Returns:
        A dict, name -> array.

    Raises:
        UserError: if there are more bytes.
    """
    found = {}
    for name, values in tensors:
        most -= values.nbytes
        if most < 0:
            raise UserError("its tensors share their bytes too often.")
        found[name] = np.array(values)
    return found


class Weights:
    """The tensors of a file, by name; each is asked for once.

    Args:
        path: of the file, for messages.
        tensors: dict, name -> array.
    """

    def __init__(self, path, tensors):
        self.path = path
        self._tensors = tensors

    def get(self, name):
        """(...) float32, or None if there is no such tensor."""
        found = self._tensors.pop(name, None)
        return None if found is None else np.asarray(found, "float32")

    def __call__(self, name, *shape):
        self.check(name, *shape)
        return self.get(name)

    def check(self, name, *shape):
        """UserError unless there is a tensor of this name and shape."""
        found = self._tensors.get(name)
        if found is None:
            raise UserError(f"{self.path} has no {name}.")
        if found.shape != shape:
            raise UserError(
                f"{self.path}: {name} has the shape {found.shape}; expected "
                f"{shape}."
            )

    def refuse_others(self):
        """UserError for tensors that no layer has asked for."""
        if self._tensors:
            raise UserError(
                f"{self.path} has tensors of layers that are not converted: "
                f"{', '.join(sorted(self._tensors)[:3])}."
            )
