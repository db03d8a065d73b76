"""Vectors in, bits out: preprocessor and model as one graph."""

from typing import Any

import keras
import tensorflow as tf

from kseq.data import Tokenizer, VectorPreprocessor
from kseq.serving.object_config import source_config
from kseq.serving.served_function import served_function
from kseq.serving.transducer_predictor import TransducerPredictor


class Transducer:
    """For each vector of a sequence, the probabilities of bits.

        probabilities = sigmoid(model(preprocessor(vectors)))

    Args:
        model: such as `kseq.models.BinaryRNN`.
        preprocessor: a `kseq.data.VectorPreprocessor`.

    Attributes:
        model_card: str, the README of the run that it was loaded from.
        signatures: dict of functions of `vectors` (B, T, F) float32, where
            vectors of NaN are padding at the end:

            - `serving_default`: `probabilities` (B, T, D) float32.
            - `explain`, of a model with a memory of N slots: also
              `read_weights` (B, T, H, N) and `write_weights` (B, T, H', N)
              float32, the weightings of each head.

    Raises:
        ValueError: if model and preprocessor have different sizes.

    Example:
        >>> model = kseq.models.BinaryRNN(3, 2, keras.layers.LSTMCell(4))
        >>> transducer = Transducer(model, kseq.data.VectorPreprocessor(3))
        >>> vectors = tf.zeros((1, 5, 3))
        >>> served = transducer.signatures["serving_default"]
        >>> served(vectors=vectors)["probabilities"].shape
        TensorShape([1, 5, 2])
    """

    def __init__(self, model: keras.Model, preprocessor: VectorPreprocessor):
        if model.input_dim != preprocessor.num_features:
            raise ValueError(
                "The model must take the features of the preprocessor. "
                f"Received: input_dim={model.input_dim}, "
                f"num_features={preprocessor.num_features}"
            )
        self.model = model
        self.preprocessor = preprocessor
        self.tokenizers: dict[str, Tokenizer] = {}
        self.model_card = ""
        raw = preprocessor.input_signature
        self.signatures = {
            "serving_default": served_function(self._probabilities, raw)
        }
        if model.has_memory:
            self.signatures["explain"] = served_function(self._explain, raw)

    def predictor(self, batch_size: int | None = None) -> TransducerPredictor:
        """The `TransducerPredictor` of Python lists."""
        return TransducerPredictor(self.signatures, self, batch_size)

    def get_config(self) -> dict[str, Any]:
        """Its description for `task.json`, JSON-able."""
        return source_config(self.preprocessor)

    def _probabilities(self, **raw):
        source = self.preprocessor(**raw)
        logits = self.model(source.inputs, training=False)
        return {"probabilities": tf.sigmoid(logits)}

    def _explain(self, **raw):
        source = self.preprocessor(**raw)
        found = self.model.weightings(source.inputs)
        return {
            "probabilities": tf.sigmoid(found["logits"]),
            "read_weights": found["read_weights"],
            "write_weights": found["write_weights"],
        }
