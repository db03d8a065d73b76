"""Text in, text out: tokenizers, search and model as one graph."""

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding import beam_search, length_limits

# Whoever loads the graph gives operations of one name one resource, whatever
# they hold: without names of their own, the tokenizers would be mixed up.
_SOURCE, _TARGET = "source_tokenizer", "target_tokenizer"


class Translator:
    """Text in, text out: tokenizers, search and model as one graph.

    A blank line gives a blank line with score 0. A source of more than
    `max_length` tokens is cut, and so is an answer.

    Args:
        model: has `encode`, `decode_step` and `attention_weights`.
        source_tokenizer: has `tokenize` and `pieces`.
        target_tokenizer: has `detokenize` and `pieces`.
        beam_size: int.
        length_penalty: float, see `kseq.decoding.beam_search`.
        max_length: int, most tokens of a source with its END, and of an
            answer with its START and END.

    Each of these takes `text`, a (B,) string tensor, and gives a dict:

    - `translate`: `text` (B,) string; `score` (B,) float32, the sum of the
      log-probabilities divided by the length penalty; `truncated` (B,) bool,
      whether the source was cut.
    - `n_best`: `texts` (B, N) string, the best first, and `scores` (B, N)
      float32, where N is `beam_size`; `truncated`.
    - `explain`: `source_tokens` (B, S) and `target_tokens` (B, T), strings,
      "" at padding, and `attention` (B, T, S) float32.

    Raises:
        ValueError: if `max_length` is less than 2.

    Example:
        >>> lines = ["a rose is a rose", "is a rose"]
        >>> tokenizer = kseq.data.Tokenizer.train(lines, 270, "bpe")
        >>> model = kseq.models.LSTMSeq2Seq(
        ...     source_vocab_size=270, target_vocab_size=270,
        ...     embedding_dim=8, units=16,
        ...     attention=kseq.layers.LuongAttention("dot"),
        ... )
        >>> translator = Translator(model, tokenizer, tokenizer)
        >>> translator.translate(tf.constant(["a rose", ""]))["text"].shape
        TensorShape([2])
    """

    def __init__(
        self,
        model,
        source_tokenizer,
        target_tokenizer,
        *,
        beam_size=4,
        length_penalty=1.0,
        max_length=512,
    ):
        if max_length < 2:
            raise ValueError(
                "max_length must be at least 2. "
                f"Received: max_length={max_length}"
            )
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.max_length = max_length

        text = tf.TensorSpec((None,), tf.string, name="text")
        self.translate, self.n_best, self.explain = (
            tf.function(method, input_signature=[text], autograph=False)
            for method in (self._translate, self._n_best, self._explain)
        )
        # A function of its own, for a search takes long to be traced.
        ids = tf.TensorSpec((None, None), tf.int32, name="source_ids")
        self._best = tf.function(
            lambda source_ids: self._search(source_ids, n_best=1),
            input_signature=[ids],
            autograph=False,
        )
        self.signatures = {
            "serving_default": self.translate,
            "n_best": self.n_best,
            "explain": self.explain,
        }

    def describe(self):
        """What an export says of itself, a dict."""
        return {
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "max_length": self.max_length,
            "source_vocab_size": self.source_tokenizer.vocab_size,
            "target_vocab_size": self.target_tokenizer.vocab_size,
        }

    def _translate(self, text):
        source_ids, truncated = self._source(text)
        best = self._best(source_ids)
        return {
            "text": self._target(best.ids[:, 0]),
            "score": best.scores[:, 0],
            "truncated": truncated,
        }

    def _n_best(self, text):
        source_ids, truncated = self._source(text)
        best = self._search(source_ids, n_best=self.beam_size)
        batch, answers, length = tf.unstack(tf.shape(best.ids))
        texts = self._target(tf.reshape(best.ids, (batch * answers, length)))
        return {
            "texts": tf.reshape(texts, (batch, answers)),
            "scores": best.scores,
            "truncated": truncated,
        }

    def _explain(self, text):
        source_ids, _ = self._source(text)
        ids = self._best(source_ids).ids[:, 0]
        start = tf.fill((tf.shape(ids)[0], 1), START)
        target_ids = tf.concat([start, ids], axis=1)
        weights = self.model.attention_weights(source_ids, target_ids)
        weights = weights[:, :-1]  # (B, T, S), nothing follows the last token
        real = tf.cast(ids != PAD, tf.float32)
        with tf.name_scope(_SOURCE):
            source_tokens = self.source_tokenizer.pieces(source_ids)
        with tf.name_scope(_TARGET):
            target_tokens = self.target_tokenizer.pieces(ids)
        return {
            "source_tokens": tf.where(source_ids == PAD, "", source_tokens),
            "target_tokens": tf.where(ids == PAD, "", target_tokens),
            "attention": weights * real[:, :, None],
        }

    def _source(self, text):
        """The ids of (B,) strings, and whether they had to be cut."""
        with tf.name_scope(_SOURCE):
            whole = self.source_tokenizer.tokenize(text)
        tokens = whole[:, : self.max_length - 1]
        ids = tf.pad(tokens.to_tensor(PAD), [[0, 0], [0, 1]])  # (B, S)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        is_end = tf.range(tf.shape(ids)[1]) == lengths[:, None]
        truncated = whole.row_lengths() > tokens.row_lengths()
        return tf.where(is_end, END, ids), truncated

    def _target(self, ids):
        with tf.name_scope(_TARGET):
            return self.target_tokenizer.detokenize(ids)

    def _search(self, source_ids, n_best):
        limits = tf.minimum(length_limits(source_ids), self.max_length - 1)
        blank = source_ids[:, 0] == END
        best = beam_search(
            self.model,
            source_ids,
            tf.where(blank, 0, limits),
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=n_best,
        )
        scores = tf.where(blank[:, None], 0.0, best.scores)
        return best._replace(scores=scores)
