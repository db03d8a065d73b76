"""The reads and writes of a memory by a model."""

from typing import Any, NamedTuple

import numpy as np

from kseq.serving.answer import rounded


class MemoryUse(NamedTuple):
    """The weightings of a Neural Turing machine for one sequence.

    In a notebook it shows itself as a picture.

    Args:
        inputs: (T, F) float array.
        probabilities: (T, D) float array, of the bits of the answer.
        read_weights: (T, H, N) float array; each (N,) sums to 1.
        write_weights: (T, H', N) float array.
        truncated: False; no input is cut.
    """

    inputs: np.ndarray
    probabilities: np.ndarray
    read_weights: np.ndarray
    write_weights: np.ndarray
    truncated: bool = False

    @classmethod
    def of_row(cls, inputs: np.ndarray, row: dict[str, Any]) -> "MemoryUse":
        """Without the padding of one row of what `explain` returns."""
        names = ("probabilities", "read_weights", "write_weights")
        return cls(inputs, *(row[name][: len(inputs)] for name in names))

    def to_json(self) -> dict[str, Any]:
        """The weightings as lists, rounded to six digits."""
        return {
            name: rounded(getattr(self, name))
            for name in ("read_weights", "write_weights")
        }

    def _repr_png_(self):
        from kseq.pictures import memory_picture

        return memory_picture(*self[:4])
