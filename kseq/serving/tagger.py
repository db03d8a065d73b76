"""A tag for each word: preprocessor and model as one graph."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from kseq.data import Tokenizer, WordPreprocessor
from kseq.serving.object_config import source_config
from kseq.serving.served_function import served_function, served_part
from kseq.serving.tagger_predictor import TaggerPredictor
from kseq.user_error import check_number


class Tagger:
    """A sentence in, a tag for each of its words out.

    Words are separated by ASCII white space. A sentence with more words than
    the preprocessor admits is cut.

    Args:
        model: such as `kseq.models.LSTMTagger`.
        preprocessor: a `kseq.data.WordPreprocessor`.
        tags: C strings, the tagset, in the order of the model's classes.
        temperature: float, 0.01 to 100: the logits are divided by it, see
            `kseq.evaluation.fit_temperature`.

    Attributes:
        model_card: str, the README of the run that it was loaded from.
        signatures: dict of functions of `text` (B,) string, by keyword:

            - `serving_default`: `words` and `tags` (B, W) string, "" at
              padding; `probabilities` (B, W) float32, of these tags, 0 at
              padding; `truncated` (B,) bool, whether the sentence was cut.
            - `distribution`: `words`; `tagset` (B, C) string, all tags in
              order; `probabilities` (B, W, C) float32, 0 at padding;
              `truncated`.

    Raises:
        ValueError: if there is not one tag for each class of the model, or
            the temperature is out of range.

    Example:
        >>> lines = ["a rose is a rose", "is a rose"]
        >>> tokenizer = kseq.data.Tokenizer.train(lines, 270)
        >>> model = kseq.models.LSTMTagger(
        ...     270, 2, embedding_dim=8, units=6, num_layers=1
        ... )
        >>> preprocessor = kseq.data.WordPreprocessor(tokenizer)
        >>> tagger = Tagger(model, preprocessor, ("no", "yes"))
        >>> text = tf.constant(["A rose.", ""])
        >>> tagger.signatures["serving_default"](text=text)["tags"].shape
        TensorShape([2, 2])
    """

    def __init__(
        self,
        model: keras.Model,
        preprocessor: WordPreprocessor,
        tags: Sequence[str],
        temperature: float = 1.0,
    ):
        check_number("temperature", temperature, 0.01, 100)
        if len(tags) != model.num_tags:
            raise ValueError(
                f"Expected one tag for each of the {model.num_tags} classes "
                f"of the model. Received: tags={tags}"
            )
        self.model = model
        self.preprocessor = preprocessor
        self.tags = tuple(tags)
        self.temperature = temperature
        self.model_card = ""
        # Traced once for both signatures: a recurrence takes seconds.
        self._read = served_part(lambda inputs: model(inputs, training=False))
        raw = preprocessor.input_signature
        self.signatures = {
            "serving_default": served_function(self._tag, raw),
            "distribution": served_function(self._distribution, raw),
        }

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """That of the words, by its name."""
        return {"source": self.preprocessor.tokenizer}

    def predictor(self, batch_size: int | None = None) -> TaggerPredictor:
        """The `TaggerPredictor` of Python lists."""
        return TaggerPredictor(self.signatures, self, batch_size)

    def get_config(self) -> dict[str, Any]:
        """Its description for `task.json`, JSON-able."""
        config = source_config(self.preprocessor) | {"tags": list(self.tags)}
        if self.temperature != 1:
            config["temperature"] = self.temperature
        return config

    def _tag(self, text):
        found = self._distribution(text)
        best = tf.argmax(found["probabilities"], axis=-1)
        is_word = found["words"] != ""
        probabilities = tf.reduce_max(found["probabilities"], axis=-1)
        return {
            "words": found["words"],
            "tags": tf.where(is_word, tf.gather(self.tags, best), ""),
            "probabilities": tf.where(is_word, probabilities, 0.0),
            "truncated": found["truncated"],
        }

    def _distribution(self, text):
        source = self.preprocessor(text)
        words = self.preprocessor.words(text)
        shape = [tf.shape(words)[0], len(self.tags)]
        logits = self._read(source.inputs)
        probabilities = tf.nn.softmax(logits / self.temperature)
        is_word = tf.cast(words != "", probabilities.dtype)
        return {
            "words": words,
            "tagset": tf.broadcast_to(self.tags, shape),
            "probabilities": probabilities * is_word[:, :, None],
            "truncated": source.truncated,
        }
