"""A label out: preprocessor and model as one graph."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from kseq.data import Tokenizer
from kseq.serving.classifier_predictor import ClassifierPredictor
from kseq.serving.explanation import source_tokens
from kseq.serving.object_config import source_config
from kseq.serving.preprocessor import Preprocessor
from kseq.serving.served_function import served_function, served_part
from kseq.user_error import check_number


class Classifier:
    """A document, a recording or another input in, its label out.

    A blank document has the probabilities of an empty input.
    A document with more sentences than the preprocessor admits is cut.

    Args:
        model: has `explain`, as `kseq.models.HierarchicalAttention` does for
            documents. For other inputs it gives `logits` (B, C) and
            `attention` (B, S), the weights of what the preprocessor names.
        preprocessor: makes the model's inputs from raw ones, see
            `kseq.data.DocumentPreprocessor`.
        labels: C strings, in the order of the model's classes.
        temperature: float, 0.01 to 100: the logits are divided by it, see
            `kseq.evaluation.fit_temperature`.

    Attributes:
        model_card: str, the README of the run that it was loaded from.
        signatures: dict of functions by keyword:

            - `serving_default`, of `text` (B,) string: `label` (B,) string and
              `probability` (B,) float32, of the most likely; `labels` and
              `probabilities` (B, C), all of them in order; `truncated` (B,)
              bool, whether the document was cut.
            - `explain`, of `text`: `sentences` (B, L) and `words` (B, L, W),
              strings, "" at padding; `sentence_weights` (B, L) and
              `word_weights` (B, L, W) float32, which sum to 1 over a
              document and over a sentence; a word that is a byte of a
              character is as `<0xE6>`; `label`, `probability` and
              `truncated`. For other inputs than documents: `source_tokens`
              (B, S) and `target_tokens` (B, 1), strings, the label;
              `attention` (B, 1, S) float32, which sums to 1.
            - `classify`, of `inputs` (B,) string, serialized
              `tf.train.Example`s with a feature `text`, or what else the
              input is called if it is a string: `classes` and `scores` (B,
              C), TensorFlow Serving's classification signature.

    Raises:
        ValueError: if there is not one label for each class of the model, or
            the temperature is out of range.

    Example:
        >>> documents = kseq.data.Documents(["A rose. A rose?"], ["yes"])
        >>> preprocessor = kseq.data.DocumentPreprocessor.train(documents, 270)
        >>> model = kseq.models.FlatAttention(
        ...     270, 2, embedding_dim=8, units=5, attention_units=5
        ... )
        >>> classifier = Classifier(model, preprocessor, ("no", "yes"))
        >>> text = tf.constant(["A rose.", ""])
        >>> classifier.signatures["serving_default"](text=text)["label"].shape
        TensorShape([2])
    """

    def __init__(
        self,
        model: keras.Model,
        preprocessor: Preprocessor,
        labels: Sequence[str],
        temperature: float = 1.0,
    ):
        check_number("temperature", temperature, 0.01, 100)
        if len(labels) != model.num_classes:
            raise ValueError(
                f"Expected one label for each of the {model.num_classes} "
                f"classes of the model. Received: labels={labels}"
            )
        self.model = model
        self.preprocessor = preprocessor
        self.labels = tuple(labels)
        self.temperature = temperature
        self.model_card = ""
        # Traced once for all signatures: tracing a recurrence takes seconds.
        self._read = served_part(model.explain)

        examples = {"inputs": tf.TensorSpec((None,), tf.string, "inputs")}
        raw = preprocessor.input_signature
        [spec] = raw.values()
        self.signatures = {
            "serving_default": served_function(self._classify, raw),
            "explain": served_function(self._explain, raw),
        }
        if spec.dtype == tf.string and spec.shape.rank == 1:
            self.signatures["classify"] = served_function(
                self._classify_examples, examples
            )

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizer of the source, if it is text, by its name."""
        source = getattr(self.preprocessor, "tokenizer", None)
        return {"source": source} if source else {}

    def predictor(self, batch_size: int | None = None) -> ClassifierPredictor:
        """The `ClassifierPredictor` of Python lists."""
        source = self.preprocessor.input_name
        return ClassifierPredictor(self.signatures, self, batch_size, source)

    def get_config(self) -> dict[str, Any]:
        """Its description for `task.json`, JSON-able."""
        config = source_config(self.preprocessor) | {
            "labels": list(self.labels)
        }
        if self.temperature != 1:
            config["temperature"] = self.temperature
        return config

    def _classify(self, **raw):
        source = self.preprocessor(**raw)
        probabilities = self._probabilities(self._read(source.inputs))
        labels = tf.broadcast_to(self.labels, tf.shape(probabilities))
        return {
            **self._best(probabilities),
            "labels": labels,
            "probabilities": probabilities,
            "truncated": source.truncated,
        }

    def _explain(self, **raw):
        source = self.preprocessor(**raw)
        explained = self._read(source.inputs)
        best = self._best(self._probabilities(explained))
        if "sentence_weights" in explained:
            sentences, words = self.preprocessor.tokens(source.inputs)
            weights = {
                "sentences": sentences,
                "sentence_weights": explained["sentence_weights"],
                "words": words,
                "word_weights": explained["word_weights"],
            }
        else:
            weights = {
                "source_tokens": source_tokens(self, source),
                "target_tokens": best["label"][:, None],
                "attention": explained["attention"][:, None, :],
            }
        return {**weights, **best, "truncated": source.truncated}

    def _classify_examples(self, inputs):
        name = self.preprocessor.input_name
        features = {name: tf.io.FixedLenFeature((), tf.string)}
        parsed = tf.io.parse_example(inputs, features)
        answer = self._classify(**parsed)
        return {"classes": answer["labels"], "scores": answer["probabilities"]}

    def _probabilities(self, explained):
        return tf.nn.softmax(explained["logits"] / self.temperature)

    def _best(self, probabilities):
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(self.labels), best),
            "probability": tf.reduce_max(probabilities, axis=-1),
        }
