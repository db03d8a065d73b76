"""Text out: preprocessor, model, search and tokenizer as one graph."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from tensorflow.types.experimental import PolymorphicFunction

from kseq.control_tokens import END, PAD, UNK
from kseq.data import Source, Tokenizer, split_paragraphs, teacher_forcing
from kseq.decoding import (
    BeamSearch,
    ForcedPrefix,
    Phrases,
    Search,
    length_limits,
)
from kseq.decoding.constraints import StopStrings, stop_pattern
from kseq.decoding.hypotheses import (
    coverage_scores,
    penalized_scores,
    token_log_probs,
)
from kseq.decoding.phrases import num_tokens
from kseq.decoding.sampling import SamplingParams, to_sampling
from kseq.decoding.start_decoding import attends, source_mask
from kseq.serving.explanation import TARGET_SCOPE, explanation
from kseq.serving.generator_predictor import GeneratorPredictor
from kseq.serving.object_config import object_config, source_config
from kseq.serving.preprocessor import Preprocessor
from kseq.serving.served_function import served_function, served_part
from kseq.serving.stream_signatures import stream_signatures
from kseq.sources import source_named
from kseq.user_error import ArgumentError, check_integers, check_number

_AT_ONCE = 32  # sentences of paragraphs
# A carriage return is that of the line.
_ENDS_IN_SPACE = r"\C*[ \t\n\v\f]\r*"


class Generator:
    """Text out, whatever comes in: translation, captions, transcripts.

        inputs = preprocessor(raw)
        answers = tokenizer.detokenize(search(model, inputs))

    A blank input gets a blank answer with score 0, even with a prefix. Any
    other answer has at most `2 * length + 10` tokens after its prefix, or
    `training_length` if that is larger. Here `length` is that of the source,
    multiplied by `length_ratio` if that is above 1.

    Args:
        model: has `encode` and `decode_step`, and `attention_weights` if it
            attends to its source.
        preprocessor: makes the model's inputs from raw ones, see
            `kseq.data.TextPreprocessor`.
        tokenizer: a `kseq.data.Tokenizer` of the answers.
        search: `kseq.decoding.BeamSearch`, `GreedySearch` or `Sampling`;
            a beam of 4 if None.
        max_length: int, maximum number of tokens of an answer, START and END
            included.
        training_length: int, maximum number of tokens of an answer in
            training, END included: 0 if only the source limits an answer.
        length_ratio: float; few answers have more than length_ratio * source +
            5 tokens, and a beam search ends when only longer answers could
            still be better. 0 if it is unknown.
        stop: sequence of str, strings that end an answer where the first of
            them begins.

    Attributes:
        model_card: str, the README of the run that it was loaded from.
        best: function, `kseq.data.Source` -> `kseq.decoding.Hypotheses` with
            the best answer of each input.
        signatures: dict of functions of a batch of raw inputs, by keyword;
            for text, `text` (B,) string:

            - `serving_default`: `text` (B,) string; `score` (B,) float32,
              the sum of the log-probabilities over the length penalty;
              `truncated` (B,) bool, whether the input was cut.
            - `n_best`: `texts` (B, N) string, the best first, and `scores`
              (B, N) float32, -inf where there are fewer than N; `truncated`.
            - `paragraphs`, for `text`: `text`, whose sentences were answered
              one by one, see `kseq.data.split_paragraphs`, and `truncated`.
            - `prefix`: the same as `n_best`, of answers that begin with
              `prefix` (B,) string; white space at its end finishes its last
              word.
            - `score`: `score` (B,) of given answers, `target` (B,) string,
              by the decoder alone, without CTC;
              `log_prob` (B,) float32, without the length penalty, and
              `tokens` (B,) int32, END included; of each token
              `target_tokens` (B, T) string, "" at padding, and
              `token_log_probs` (B, T) float32; `truncated` (B,) bool,
              whether the input or the answer was cut.
            - `explain`: the outputs of `serving_default`; `source_tokens`
              (B, S) and `target_tokens` (B, T), strings, "" at padding, and
              `attention` (B, T, S) float32.
            - `sample`, for `turns` and a `prompt`: the outputs of `explain`
              or, if there is none, of `serving_default`, for an answer drawn
              with `temperature` (B,) float32, `top_p` (B,)
              float32 and `seed` (B,) int64, see `kseq.decoding.Sampling`;
              values out of range are clipped.

    Raises:
        ValueError: if `max_length` is less than 2, `training_length` is
            negative, a string of `stop` is empty, `search` is no search, or a
            model that copies has two vocabularies.

    Example:
        >>> lines = ["a rose is a rose", "is a rose"]
        >>> tokenizer = kseq.data.Tokenizer.train(lines, 270, "bpe")
        >>> model = kseq.models.LSTMSeq2Seq(
        ...     source_vocab_size=270, target_vocab_size=270,
        ...     embedding_dim=8, units=16,
        ...     attention=kseq.layers.LuongAttention("dot"),
        ... )
        >>> preprocessor = kseq.data.TextPreprocessor(tokenizer)
        >>> generator = Generator(model, preprocessor, tokenizer)
        >>> text = tf.constant(["a rose", ""])
        >>> generator.signatures["serving_default"](text=text)["text"].shape
        TensorShape([2])
    """

    def __init__(
        self,
        model: keras.Model,
        preprocessor: Preprocessor,
        tokenizer: Tokenizer,
        search: Search | None = None,
        *,
        max_length: int = 512,
        training_length: int = 0,
        length_ratio: float = 0.0,
        stop: Sequence[str] = (),
    ):
        check_integers(max_length=max_length, minimum=2)
        check_integers(training_length=training_length, minimum=0)
        check_number("length_ratio", length_ratio, 0, 1000)
        search = BeamSearch() if search is None else search
        if isinstance(search, type) or not callable(search):
            raise ArgumentError(
                "search must be a search such as BeamSearch(4). Received: "
                f"{search=}"
            )
        source = getattr(preprocessor, "tokenizer", None)
        copies = getattr(model, "copy", False)  # ids of the source
        if copies and not (source and source.shares_vocabulary(tokenizer)):
            raise ArgumentError(
                "A model with copy=True needs one vocabulary of source and "
                "target: one type of --pieces."
            )
        self.model = model
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.search = search
        self.model_card = ""
        self.max_length = max_length
        self.training_length = training_length
        self.length_ratio = length_ratio
        self.stop = tuple(stop)
        self.search_until_stop = self.search
        if self.stop:
            ends = StopStrings(self.stop, tokenizer.surfaces())
            self.search_until_stop = dataclasses.replace(
                self.search, constraints=(*self.search.constraints, ends)
            )
        # Traced once for all signatures: tracing a search takes seconds.
        self.best = served_part(self._search_best)
        self._all = served_part(self._search_all)
        self._drawn = served_part(self._search_drawn)

        raw = preprocessor.input_signature
        target = {"target": tf.TensorSpec((None,), tf.string, "target")}
        prefix = {"prefix": tf.TensorSpec((None,), tf.string, "prefix")}
        self.signatures = {
            "serving_default": served_function(self._generate, raw),
            "n_best": served_function(self._n_best, raw),
            "prefix": served_function(self._n_best, {**raw, **prefix}),
            "score": served_function(self._score, {**raw, **target}),
        }
        if attends(model):
            self.signatures["explain"] = served_function(self._explain, raw)
        source = source_named(preprocessor.input_name)
        if source.has_sentences:
            self.signatures["paragraphs"] = served_function(
                self._paragraphs, raw
            )
        if source.has_many_answers:
            self.signatures["sample"] = served_function(
                self._sample, {**raw, **SamplingParams.input_signature()}
            )

    @functools.cached_property
    def stream_signatures(self) -> dict[str, PolymorphicFunction]:
        """`stream_start`, `stream_next` and `stream_text`, as in an export.

        They give an answer while it is being found: that of `sample` if there
        is this signature, otherwise that of `serving_default`. See
        `kseq.serving.stream_signatures`.
        """
        return stream_signatures(self, "sample" in self.signatures)

    def with_search(self, search: Search) -> "Generator":
        """The same generator with a different search."""
        other = Generator(
            self.model,
            self.preprocessor,
            self.tokenizer,
            search,
            max_length=self.max_length,
            training_length=self.training_length,
            length_ratio=self.length_ratio,
            stop=self.stop,
        )
        other.model_card = self.model_card
        return other

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """Tokenizers of the answers and, if it is text, the source, by name."""
        source = getattr(self.preprocessor, "tokenizer", None)
        tokenizers = {"target": self.tokenizer}
        return {"source": source, **tokenizers} if source else tokenizers

    def limits(self, source: Source, more: tf.Tensor | int = 0) -> tf.Tensor:
        """The largest numbers of tokens of answers, (B,) int32.

        Args:
            source: `kseq.data.Source`.
            more: (B,) int32, tokens that an answer must have; or 0.
        """
        factor = 2 * max(1.0, self.length_ratio)
        limits = length_limits(source.lengths, factor)
        limits = tf.maximum(limits, self.training_length)
        limits = tf.minimum(limits + more, self.max_length - 1)
        return tf.where(source.blank, 0, limits)

    def likely_lengths(
        self, source: Source, more: tf.Tensor | int = 0
    ) -> tf.Tensor | None:
        """What few answers are longer than, (B,) int32; None if unknown.

        Args:
            source: `kseq.data.Source`.
            more: see `limits`.
        """
        if not self.length_ratio:
            return None
        return length_limits(source.lengths, self.length_ratio, 5) + more

    def search_lengths(
        self, search: Search, source: Source, more: tf.Tensor | int = 0
    ) -> dict[str, Any]:
        """The lengths that a search takes, by the names of its arguments."""
        lengths = {"max_lengths": self.limits(source, more)}
        if isinstance(search, BeamSearch):
            lengths["likely_lengths"] = self.likely_lengths(source, more)
        return lengths

    def predictor(self, batch_size: int | None = None) -> GeneratorPredictor:
        """The `GeneratorPredictor` of Python lists."""
        source = self.preprocessor.input_name
        texts = {
            name: tf.TensorSpec((None, None), tf.string, name)
            for name in ("required", "forbidden")
        }
        raw = self.preprocessor.input_signature
        # Not exported, where it would be one more search to trace.
        phrases = served_function(self._with_phrases, {**raw, **texts})
        signatures = {**self.signatures, "phrases": phrases}
        return GeneratorPredictor(signatures, self, batch_size, source)

    def get_config(self) -> dict[str, Any]:
        """Its description for `task.json`, JSON-able."""
        config = {
            **source_config(self.preprocessor),
            "search": object_config(self.search),
            "max_length": self.max_length,
            "training_length": self.training_length,
        }
        if self.length_ratio:
            config["length_ratio"] = self.length_ratio
        if self.stop:
            config["stop"] = list(self.stop)
        return config

    def _generate(self, **raw):
        source = self.preprocessor(**raw)
        return self._best_text(source, self.best(source))

    def _best_text(self, source, answers):
        return {
            "text": self.texts(answers.ids[:, 0]),
            "score": answers.scores[:, 0],
            "truncated": source.truncated,
        }

    def _paragraphs(self, text):
        found = split_paragraphs(text)
        answers, truncated = self._answer_in_parts(found.sentences)
        return {
            "text": found.joined(answers),
            "truncated": tf.math.unsorted_segment_sum(
                tf.cast(truncated, tf.int32), found.text, tf.size(text)
            )
            > 0,
        }

    def _answer_in_parts(self, texts):
        """The best answers to (N,) texts, and which were cut; both (N,)."""
        order = tf.argsort(tf.strings.length(texts), direction="DESCENDING")
        texts = tf.gather(texts, order)
        count = tf.size(texts)

        def answer(start, answers, truncated):
            source = self.preprocessor(texts[start : start + _AT_ONCE])
            found = self.texts(self.best(source).ids[:, 0])
            return (
                start + _AT_ONCE,
                tf.concat([answers, found], axis=0),
                tf.concat([truncated, source.truncated], axis=0),
            )

        _, answers, truncated = tf.while_loop(
            lambda start, *_: start < count,
            answer,
            (0, tf.zeros([0], tf.string), tf.zeros([0], tf.bool)),
            shape_invariants=(
                tf.TensorShape([]),
                *([tf.TensorShape([None])] * 2),
            ),
            parallel_iterations=1,
        )
        places = tf.argsort(order)
        return tf.gather(answers, places), tf.gather(truncated, places)

    def _n_best(self, prefix=None, **raw):
        source = self.preprocessor(**raw)
        count = tf.shape(source.lengths)[0]
        if prefix is None:
            empty = tf.zeros((count, 0), tf.int32)
            # Of unknown width, as any other prefix: `_all` is traced once.
            prefix_ids = tf.raw_ops.PlaceholderWithDefault(
                input=empty, shape=(None, None)
            )
            ends_word = tf.zeros((count,), tf.bool)
        else:
            with tf.name_scope(TARGET_SCOPE):
                prefix_ids = self.tokenizer.tokenize(prefix).to_tensor(PAD)
            ends_word = tf.strings.regex_full_match(prefix, _ENDS_IN_SPACE)
            ends_word &= tf.reduce_any(prefix_ids != PAD, axis=1)
        best = self._all(source, prefix_ids, ends_word)
        return self._texts_of(best, source)

    def _with_phrases(self, required, forbidden, **raw):
        search = self.search_until_stop
        if not isinstance(search, BeamSearch) or search.beam_size == 1:
            raise ArgumentError("Phrases need a beam of two or more.")
        source = self.preprocessor(**raw)
        ids = self._with_and_without_space(tf.reshape(required, (-1,)))
        shape = (*tf.unstack(tf.shape(required)), 2, tf.shape(ids)[2])
        phrases = Phrases(
            tf.reshape(ids, shape), forbidden, self.tokenizer.surfaces()
        )
        best = self._answers(
            source, n_best=search.most_answers, phrases=phrases
        )
        return self._texts_of(best, source)

    def _with_and_without_space(self, phrases):
        """The ids of (N,) texts after a space and without it, (N, 2, L)."""
        with tf.name_scope(TARGET_SCOPE):
            after = self.tokenizer.tokenize(phrases)
            within = self.tokenizer.tokenize_within(phrases)
        ids = tf.concat([after, within], axis=0).to_tensor(PAD)
        after, within = tf.split(ids, 2)
        # Of a tokenizer of words, a word without its space is unknown.
        is_known = tf.reduce_all(within != UNK, axis=1, keepdims=True)
        return tf.stack([after, tf.where(is_known, within, after)], axis=1)

    def _texts_of(self, best, source):
        batch, answers, length = tf.unstack(tf.shape(best.ids))
        texts = self.texts(tf.reshape(best.ids, (batch * answers, length)))
        return {
            "texts": tf.reshape(texts, (batch, answers)),
            "scores": best.scores,
            "truncated": source.truncated,
        }

    def _score(self, target, **raw):
        source = self.preprocessor(**raw)
        with tf.name_scope(TARGET_SCOPE):
            labels, cut = self.tokenizer.tokenize_with_end(
                target, self.max_length - 1
            )
        # An empty batch has a column, too.
        shape = tf.maximum(labels.bounding_shape(), [0, 1])
        labels = labels.to_tensor(PAD, shape=shape)
        real = tf.cast(labels != PAD, tf.float32)
        logits = self.model(
            {**source.inputs, "target_ids": teacher_forcing(labels)}
        )
        tokens = tf.reduce_sum(real, axis=1)
        # A blank input has a blank answer for sure.
        is_sure = source.blank & (tokens <= 1)
        of_tokens = tf.where(
            is_sure[:, None], 0.0, token_log_probs(logits, labels, real)
        )
        log_probs = tf.reduce_sum(of_tokens, axis=1)
        with tf.name_scope(TARGET_SCOPE):
            pieces = self.tokenizer.pieces(labels)
        scores = penalized_scores(
            log_probs,
            tokens,
            self.search.length_penalty,
            self.search.penalty_offset,
        )
        if penalty := getattr(self.search, "coverage_penalty", 0.0):
            scores += self._coverage(source, labels, real, penalty)
        return {
            "score": scores,
            "log_prob": log_probs,
            "tokens": tf.cast(tokens, tf.int32),
            "target_tokens": tf.where(labels != PAD, pieces, ""),
            "token_log_probs": of_tokens,
            "truncated": source.truncated | cut,
        }

    def _coverage(self, source, labels, real, penalty):
        """What answers gain by their attention, 0 for a blank input."""
        inputs = {**source.inputs, "target_ids": teacher_forcing(labels)}
        weights = self.model.attention_weights(inputs)  # (B, T, S)
        mask = source_mask(self.model.encode(source.inputs)["memory"])
        coverage = tf.reduce_sum(weights * real[:, :, None], axis=1)
        gained = coverage_scores(coverage, mask, penalty)
        return tf.where(source.blank, 0.0, gained)

    def _explain(self, **raw):
        source = self.preprocessor(**raw)
        return self._explained(source, self.best(source))

    def _explained(self, source, answers):
        found = self._best_text(source, answers)
        return found | explanation(self, source, answers)

    def _sample(self, temperature, top_p, seed, **raw):
        source = self.preprocessor(**raw)
        params = SamplingParams.clipped(temperature, top_p, seed)
        drawn = self._drawn(source, params)
        has_attention = "explain" in self.signatures
        outputs = self._explained if has_attention else self._best_text
        return outputs(source, drawn)

    def texts(self, ids: tf.Tensor) -> tf.Tensor:
        """The texts of (B, T) int32 ids, up to a stop string; (B,) string."""
        with tf.name_scope(TARGET_SCOPE):
            texts = self.tokenizer.detokenize(ids)
        if not self.stop:
            return texts
        return tf.strings.regex_replace(texts, stop_pattern(self.stop), "")

    def _search_best(self, source):
        return self._answers(source, n_best=1)

    def _search_all(self, source, prefix_ids, ends_word):
        following = None
        if not self.tokenizer.is_verbatim:  # one that is keeps the space
            surfaces = enumerate(self.tokenizer.surfaces())
            begins_word = [
                surface.startswith(b" ") or token == END
                for token, surface in surfaces
            ]
            following = tf.constant(begins_word) | ~ends_word[:, None]
        prefix = ForcedPrefix(prefix_ids, following)
        return self._answers(
            source, n_best=self.search.most_answers, prefix=prefix
        )

    def _search_drawn(self, source, params):
        sampling = to_sampling(self.search_until_stop)
        return self._answers(source, n_best=1, search=sampling, params=params)

    def _answers(
        self,
        source,
        *,
        n_best,
        prefix=None,
        phrases=None,
        search=None,
        **options,
    ):
        more = 0
        if prefix is not None:
            more = tf.math.count_nonzero(prefix.prefix, axis=1, dtype=tf.int32)
        if phrases is not None:
            tokens = tf.cast(num_tokens(phrases.required), tf.int32)
            more += tokens
            fits = (tokens < self.max_length - 1)[:, None, None, None]
            required = tf.where(fits, phrases.required, PAD)
            options["phrases"] = phrases._replace(required=required)
        search = search or self.search_until_stop
        best = search(
            self.model,
            source.inputs,
            n_best=n_best,
            prefix=prefix,
            **self.search_lengths(search, source, more),
            **options,
        )
        scores = tf.where(source.blank[:, None], 0.0, best.scores)
        return best._replace(scores=scores)
