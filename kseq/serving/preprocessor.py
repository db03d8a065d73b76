"""What a served model needs of its preprocessor."""

from collections.abc import Mapping
from typing import Any, Protocol

import tensorflow as tf

from kseq.data import Source


class Preprocessor(Protocol):
    """Makes the inputs of a model from raw ones, in a graph.

    One whose model has attention to its source also has `tokens`, see
    `kseq.data.TextPreprocessor`.
    """

    input_name: str  # of the served signature

    @property
    def input_signature(self) -> Mapping[str, tf.TensorSpec]:
        """The inputs of a served signature, passed to a call by name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Source: ...

    def get_config(self) -> dict[str, Any]:
        """All arguments but tokenizers, JSON-able."""
