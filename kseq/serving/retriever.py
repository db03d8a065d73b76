"""The nearest of many answers: model and index as one graph."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data import Tokenizer, teacher_forcing
from kseq.serving.explanation import TARGET_SCOPE
from kseq.serving.generator_predictor import GeneratorPredictor
from kseq.serving.object_config import source_config
from kseq.serving.predict_batches import predict_batches
from kseq.serving.preprocessor import Preprocessor
from kseq.serving.served_function import served_function
from kseq.terminal import progress
from kseq.user_error import check_integers

MOST_ANSWERS = 20  # of `n_best`
_BATCH = 256  # answers that are encoded at once


class Retriever:
    """Finds the answer whose vector is nearest to that of the source.

        scores = index . encode_source(preprocessor(raw))
        answer = that with the highest score, the cosine of their angle

    The index, the vectors of all answers, is computed when it is first needed,
    with the weights that the model has then; an export contains it. A blank
    source has a blank answer with score 0.

    Args:
        model: has `encode_source` and `encode_target`, see
            `kseq.models.DualEncoder`.
        preprocessor: makes the model's inputs from raw ones, see
            `kseq.data.TextPreprocessor`.
        tokenizer: a `kseq.data.Tokenizer` of the answers.
        answers: list of str, each once.
        max_length: int, maximum number of tokens of an answer that are read,
            END included.

    Attributes:
        model_card: str, the README of the run that it was loaded from.
        signatures: dict of functions of a batch of raw inputs, by keyword;
            for text, `text` (B,) string:

            - `serving_default`: `text` (B,) string; `score` (B,) float32,
              from -1 to 1; `truncated` (B,) bool, whether the input was cut.
            - `n_best`: `texts` (B, N) string, the best first, and `scores`
              (B, N) float32, for N = 20 or all of fewer answers; `truncated`.
            - `score`: `score` (B,) of given answers, `target` (B,) string,
              which may be others; `truncated` (B,) bool, whether the input or
              the answer was cut.
            - `encode`: `vector` (B, D) float32 of length 1.
            - `encode_answers`: the same of answers, `text` (B,) string.

    Raises:
        ValueError: if `max_length` is less than 2, or an answer is not a str,
            is blank, has more than one line or comes twice.

    Example:
        >>> answers = ["a rose is a rose", "is a rose"]
        >>> tokenizer = kseq.data.Tokenizer.train(answers, 270, "bpe")
        >>> model = kseq.models.DualEncoder(
        ...     270, embedding_dim=8, units=8, dim=4
        ... )
        >>> preprocessor = kseq.data.TextPreprocessor(tokenizer)
        >>> retriever = Retriever(model, preprocessor, tokenizer, answers)
        >>> text = tf.constant(["a rose", ""])
        >>> retriever.signatures["n_best"](text=text)["texts"].shape
        TensorShape([2, 2])
    """

    def __init__(
        self,
        model: keras.Model,
        preprocessor: Preprocessor,
        tokenizer: Tokenizer,
        answers: Sequence[str],
        *,
        max_length: int = 512,
    ):
        check_integers(max_length=max_length, minimum=2)
        _check_answers(answers)
        self.model = model
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.answers = tuple(answers)
        self.max_length = max_length
        self.model_card = ""
        self._index: keras.Variable | None = None

        raw = preprocessor.input_signature
        target = {"target": tf.TensorSpec((None,), tf.string, "target")}
        text = {"text": tf.TensorSpec((None,), tf.string, "text")}
        self.signatures = {
            "serving_default": served_function(self._answer, raw),
            "n_best": served_function(self._n_best, raw),
            "score": served_function(self._score, {**raw, **target}),
            "encode": served_function(self._encode, raw),
            "encode_answers": served_function(self._encode_answers, text),
        }

    @property
    def index(self) -> keras.Variable:
        """The vectors of all answers, a variable (A, D) float32."""
        if self._index is None:
            with (
                tf.init_scope(),  # also while a signature is traced
                progress(
                    "Encoding the answers", len(self.answers), "answers"
                ) as advance,
            ):
                rows = predict_batches(
                    self.signatures,
                    "encode_answers",
                    {"text": self.answers},
                    _BATCH,
                    advance,
                )
                vectors = np.stack([row["vector"] for row in rows])
                self._index = keras.Variable(
                    vectors, trainable=False, name="index"
                )
        return self._index

    @property
    def variables(self) -> list[keras.Variable]:
        """What an export contains besides the weights of the model."""
        return [self.index]

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """Tokenizers of the answers and, if it is text, the source, by name."""
        source = getattr(self.preprocessor, "tokenizer", None)
        tokenizers = {"target": self.tokenizer}
        return {"source": source, **tokenizers} if source else tokenizers

    @property
    def files(self) -> dict[str, bytes]:
        """What a run keeps besides its tokenizers: a dict, name -> bytes."""
        lines = "".join(f"{answer}\n" for answer in self.answers)
        return {"answers.txt": lines.encode("utf-8")}

    def predictor(self, batch_size: int | None = None) -> GeneratorPredictor:
        """The `GeneratorPredictor` of Python lists."""
        source = self.preprocessor.input_name
        return GeneratorPredictor(self.signatures, self, batch_size, source)

    def get_config(self) -> dict[str, Any]:
        """Its description for `task.json`, JSON-able."""
        return {
            **source_config(self.preprocessor),
            "answers": len(self.answers),
            "max_length": self.max_length,
        }

    def _answer(self, **raw):
        found = self._nearest(1, raw)
        return {
            "text": found["texts"][:, 0],
            "score": found["scores"][:, 0],
            "truncated": found["truncated"],
        }

    def _n_best(self, **raw):
        return self._nearest(min(MOST_ANSWERS, len(self.answers)), raw)

    def _nearest(self, count, raw):
        source = self.preprocessor(**raw)
        vectors = self.model.encode_source(source.inputs)
        scores, places = tf.math.top_k(
            tf.matmul(vectors, self.index.value, transpose_b=True), count
        )
        texts = tf.gather(tf.constant(self.answers), places)
        blank = source.blank[:, None]
        return {
            "texts": tf.where(blank, "", texts),
            "scores": tf.where(blank, 0.0, scores),
            "truncated": source.truncated,
        }

    def _score(self, target, **raw):
        source = self.preprocessor(**raw)
        labels, cut = self._labels(target)
        scores = tf.reduce_sum(
            self.model.encode_source(source.inputs)
            * self.model.encode_target(teacher_forcing(labels)),
            axis=1,
        )
        # A blank input has a blank answer for sure.
        is_blank = tf.math.count_nonzero(labels, axis=1) <= 1
        return {
            "score": tf.where(source.blank & is_blank, 0.0, scores),
            "truncated": source.truncated | cut,
        }

    def _encode(self, **raw):
        source = self.preprocessor(**raw)
        return {"vector": self.model.encode_source(source.inputs)}

    def _encode_answers(self, text):
        labels, _ = self._labels(text)
        return {"vector": self.model.encode_target(teacher_forcing(labels))}

    def _labels(self, text):
        """The ids of answers with END, (B, T) int32, and whether cut."""
        with tf.name_scope(TARGET_SCOPE):
            ids, cut = self.tokenizer.tokenize_with_end(
                text, self.max_length - 1
            )
        return ids.to_tensor(PAD), cut


def _check_answers(answers):
    seen = set()
    for answer in answers:
        if not isinstance(answer, str) or not answer.strip() or "\n" in answer:
            raise ValueError(
                "Each answer must be one line of text. Received: "
                f"answer={answer!r:.80}"
            )
        if answer in seen:
            raise ValueError(
                f"Answers must be unique. Received: {answer!r:.80} twice"
            )
        seen.add(answer)
    if not seen:
        raise ValueError(
            "There must be at least one answer. Received: answers=[]"
        )
