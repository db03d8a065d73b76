"""Texts from Python lists: a generator without tensors."""

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kseq.devices import check_not_forked
from kseq.serving.answer import Answer, Hypothesis, answer_of, rounded
from kseq.serving.answer_stream import STREAM_START, AnswerStream
from kseq.serving.attention import (
    Attention,
    page_of_attentions,
    with_pictures,
)
from kseq.serving.head_attention import head_attention
from kseq.serving.predict_batches import (
    Progress,
    Signatures,
    check_texts,
    predict_batches,
    to_tensor,
)
from kseq.sources import source_named
from kseq.user_error import ArgumentError, UserError, check_integers

if TYPE_CHECKING:  # an export needs no search and no model code
    from kseq.decoding import Sampling
    from kseq.serving.generator import Generator
    from kseq.serving.retriever import Retriever

_DRAWN = {"temperature": float, "top_p": float, "seed": int}


class GeneratorPredictor:
    """Answers lists of strings by lists of strings.

    `kseq.load` returns one for a run or an export whose answers are texts,
    generated or retrieved.

    Args:
        signatures: dict of functions, see `kseq.serving.Generator`.
        served: the `Generator` or `Retriever`, where there is one: not for an
            export.
        batch_size: int or None, inputs decoded at once, see `predict_batches`.
        source: str, what the signatures call an input: "text", a str;
            "prompt", a str that is continued;
            "turns", a list of str, the turns of a dialogue so far, or a str,
            the only one; "features", a float array (cells, F) of a picture;
            "image", the bytes of a JPEG or PNG file; "frames", a float array
            (S, F) of speech; or "audio", the bytes of a WAV file.

    Attributes:
        sampling: `kseq.decoding.Sampling` by which answers are drawn, for an
            export with a signature `sample`; None for the answers of the
            search that it was exported with. Its temperature, top p and seed
            count.
        model: the `keras.Model` of a run; None for an export.

    Raises:
        UserError: for a method whose signature the export does not have.

    Example:
        >>> translator = kseq.load("saved_models/dates")  # doctest: +SKIP
        >>> translator(["3 mars 1999"])  # doctest: +SKIP
        ['1999-03-03']
    """

    def __init__(
        self,
        signatures: Signatures,
        served: "Generator | Retriever | None" = None,
        batch_size: int | None = None,
        source: str = "text",
    ):
        self.signatures = signatures
        self.source = source
        self.served = served
        self.batch_size = batch_size
        self.sampling: Sampling | None = None
        self.model = served.model if served else None

    def __call__(
        self,
        inputs: list[Any],
        prefixes: list[str] | list[bytes] | None = None,
    ) -> list[str]:
        """The best answer to each input, a list of str.

        Args:
            inputs: list of str, or of what `source` says.
            prefixes: list of str, what each answer has to begin with; white
                space at the end of one finishes its last word. The answer to
                a blank input is blank in any case.
        """
        answers = self.answers(inputs, prefixes=prefixes)
        return [answer.hypotheses[0].text for answer in answers]

    def stream(self, given: Any) -> AnswerStream:
        """The best answer to one input, while it is being found.

        Text that was yielded is never revised. A beam search yields the prefix
        shared by all hypotheses that may still become the best answer; greedy
        search and sampling yield each piece. If a model cannot stream, such as
        an export of an earlier version, the answer comes in one part.

        Args:
            given: str, or what `source` says.

        Returns:
            `AnswerStream`, an iterable of str; joined they are the answer.

        Example:
            >>> for text in translator.stream("3 mars 1999"):  # doctest: +SKIP
            ...     print(text, end="", flush=True)
            1999-03-03
        """
        signatures = self._stream_signatures
        if signatures is None:
            return AnswerStream.of_answer(self.answers([given])[0])
        columns = self._columns({self.source: [given], **self._draws(1)})
        return AnswerStream(signatures, columns)

    @functools.cached_property
    def _own_stream(self):
        if "sample" not in self.signatures:
            return self.served.stream_signatures  # traced once for all
        from kseq.serving.stream_signatures import stream_signatures

        return stream_signatures(self.served, draws=False)

    @property
    def _stream_signatures(self):
        """Those for the answers of this predictor; None if there are none."""
        if self.served is not None:
            # Of the class: to read those of a generator is to trace them.
            can = hasattr(type(self.served), "stream_signatures")
            return self._own_stream if can else None
        draws = "sample" in self.signatures
        if STREAM_START in self.signatures and draws == bool(self.sampling):
            return self.signatures
        return None

    def _draws(self, count):
        """Temperature, top p and seed of inputs, where answers are drawn."""
        if self.sampling is None:
            return {}
        return {
            key: [kind(getattr(self.sampling, key))] * count
            for key, kind in _DRAWN.items()
        }

    def n_best(
        self,
        inputs: list[Any],
        n: int,
        prefixes: list[str] | list[bytes] | None = None,
    ) -> list[list[Hypothesis]]:
        """The best `n` answers to each input, lists of `Hypothesis`.

        A list is shorter where the search found fewer; that of a blank input
        has one blank answer.
        """
        answers = self.answers(inputs, n_best=n, prefixes=prefixes)
        return [answer.hypotheses for answer in answers]

    def paragraphs(
        self, texts: list[str], progress: Progress | None = None
    ) -> list[Answer]:
        """Answers to texts of several sentences, each answered by itself.

        The white space between sentences and the line breaks are those of the
        text. The score is the sum of those of the sentences.

        Args:
            texts: list of str or bytes.
            progress: callable of the number of sentences done since its last
                call; or None.

        Returns:
            list of `Answer`, one for each text.
        """
        from kseq.data import split_paragraphs  # imports tensorflow_text

        check_not_forked()
        check_texts(texts=texts)
        if not len(texts):
            return []
        found = split_paragraphs(to_tensor(texts))
        sentences = found.sentences.numpy().tolist()
        answers = self.answers(sentences, progress=progress)
        best = [answer.hypotheses[0] for answer in answers]
        joined = found.joined(
            [text.encode("utf-8", "replace") for text, _ in best]
        )
        scores, truncated = np.zeros((2, len(texts)))
        places = found.text.numpy()
        np.add.at(scores, places, [score for _, score in best])
        np.add.at(truncated, places, [answer.truncated for answer in answers])
        rows = zip(joined.numpy(), scores, truncated > 0, strict=True)
        return [
            answer_of({"text": text, "score": score, "truncated": cut})
            for text, score, cut in rows
        ]

    def markup(
        self,
        documents: list[str],
        progress: Progress | None = None,
        cut: Callable[[str], object] = lambda sentence: None,
    ) -> list[str]:
        """HTML or XML documents whose texts are answered, with all tags.

        Sentences are answered one by one, as in `paragraphs`. A tag in a
        sentence is placed at the words of the answer that attend to the words
        that it enclosed, see `kseq.data.text.markup`.

        Args:
            documents: list of str, which may be parts of documents.
            progress: see `paragraphs`.
            cut: callable of each sentence that is too long for the model, so
                that its end was left out.

        Returns:
            list of str.

        Example:
            >>> translator.markup(["<p>3 <b>mars</b></p>"])  # doctest: +SKIP
            ['<p>the <b>March</b> 3</p>']
        """
        from kseq.serving.answer_markup import answer_markup  # few need it

        check_not_forked()
        self._check_attention()
        check_texts(documents=documents)
        return answer_markup(self, documents, progress, cut)

    def scores(self, inputs: list[Any], targets: list[str]) -> list[float]:
        """The scores of given answers, a list of float.

        These are the scores of the pieces into which the tokenizer splits the
        answers. A search may find the same text in different pieces; the score
        of its `Hypothesis` is that of those pieces.

        Args:
            inputs: list of str.
            targets: list of str, an answer to each input.
        """
        return [score for score, _ in self.scores_and_cuts(inputs, targets)]

    def scores_and_cuts(
        self,
        inputs: list[Any],
        targets: list[str],
        progress: Progress | None = None,
    ) -> list[tuple[float, bool]]:
        """The same, each with whether its input or answer was cut."""
        columns = {self.source: inputs, "target": targets}
        return [
            # An export of version 0.1 does not say what it cuts.
            (float(row["score"]), bool(row.get("truncated", False)))
            for row in self._rows("score", columns, progress)
        ]

    def log_probs(
        self, inputs: list[Any], targets: list[str]
    ) -> list[tuple[float, int]] | None:
        """The log-probabilities of given answers, and their tokens.

        Args:
            inputs: list of str, or of what `source` says.
            targets: list of str, an answer to each input.

        Returns:
            A list of (float, int); the number of tokens has END in it. None
            if the export does not give them.
        """
        rows = self._rows("score", {self.source: inputs, "target": targets})
        if any("log_prob" not in row for row in rows):
            return None
        return [(float(row["log_prob"]), int(row["tokens"])) for row in rows]

    def encode(
        self,
        inputs: list[Any],
        progress: Progress | None = None,
    ) -> np.ndarray:
        """The vectors of inputs, (B, D) float32; of a retriever alone.

        Args:
            inputs: list of str, or of what `source` says.
            progress: see `predict_batches`.

        Raises:
            ValueError: if there are no inputs.
        """
        return _vectors(self._rows("encode", {self.source: inputs}, progress))

    def encode_answers(self, answers: list[str]) -> np.ndarray:
        """The vectors of answers, a list of str; the rest as in `encode`."""
        return _vectors(self._rows("encode_answers", {"text": answers}))

    def attention(self, inputs: list[Any]) -> list[Attention]:
        """The `Attention` of the best answer to each input."""
        self._check_attention()
        rows = self._rows("explain", {self.source: inputs})
        return self._attentions(inputs, rows)

    def _attentions(self, inputs, rows):
        attentions = map(Attention.of_row, rows)
        return with_pictures(attentions, self.source, inputs)

    def head_attention(
        self,
        inputs: list[Any],
        part: str = "encoder",
        block: int = -1,
        head: int = 0,
    ) -> list[Attention]:
        """The `Attention` of one head of a Transformer to each input.

        Args:
            inputs: list of str, or of what `source` says.
            part: "encoder", "decoder" or "cross", see
                `kseq.serving.head_attention`.
            block: int, index of the block.
            head: int, index of the head.
        """
        [given] = self._columns({self.source: inputs}).values()
        found = head_attention(self.served, given, part, block, head)
        if part == "decoder":
            return found
        return with_pictures(found, self.source, inputs)

    def explain(self, inputs: list[Any]) -> list[Attention]:
        """The same: what a translator explains is its attention."""
        return self.attention(inputs)

    def page(self, attentions: Iterable[Attention]) -> str:
        """HTML of what `explain` returned, see `kseq.pictures`."""
        return page_of_attentions(attentions, self.source)

    def answers(
        self,
        inputs: list[Any],
        *,
        n_best: int = 1,
        prefixes: list[str] | list[bytes] | None = None,
        phrases: list[tuple[list[str], list[str]]] | None = None,
        attention: bool = False,
        word_probabilities: bool = False,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """The best answers with all that is known of them.

        Args:
            inputs: list of str or bytes, or of what `source` says.
            n_best: int.
            prefixes: list of str or bytes, see `__call__`, or None.
            phrases: list of two lists of str each, what an answer must and
                must not contain, see `kseq.decoding.Phrases`; of a run with a
                beam of two or more. Or None.
            attention: bool, whether to explain the best answer.
            word_probabilities: bool, whether the records of the answers have
                the words of the best answer, and the probability of each,
                given the words before it, in the pieces that the tokenizer
                makes of them, as in `scores`.
            progress: see `predict_batches`.

        Returns:
            list of `Answer`.
        """
        check_integers(n_best=n_best)
        if attention:
            self._check_attention()
        if attention and prefixes is not None:
            raise UserError(
                "Attention is not available for answers with a prefix."
            )
        if attention and phrases is not None:
            raise UserError(
                "Attention is not available for answers with phrases."
            )
        columns = {self.source: inputs}
        name = "serving_default" if n_best == 1 else "n_best"
        if attention and n_best == 1:
            name = "explain"  # has the answer, too
        if self.sampling is not None:
            name = "sample"
            if n_best > 1 or prefixes is not None:
                raise UserError(
                    "An export samples one answer per input, without a prefix."
                )
            columns |= self._draws(len(inputs))
        if prefixes is not None:
            columns["prefix"], name = prefixes, "prefix"
        if phrases is not None:
            if prefixes is not None or self.sampling is not None:
                raise UserError(
                    "Phrases cannot be combined with sampling or a prefix."
                )
            columns["required"], columns["forbidden"] = _two_lists(phrases)
            name = "phrases"
        rows = self._rows(name, columns, progress)
        if rows and n_best > 1 and len(rows[0]["texts"]) < n_best:
            raise UserError(
                f"n_best={n_best} is more than the {len(rows[0]['texts'])} "
                "answers that this model gives."
            )
        attentions: Iterable[Attention | None] = [None] * len(rows)
        if attention and name in ("explain", "sample"):
            attentions = self._attentions(inputs, rows)
        elif attention:
            attentions = self.attention(inputs)
        if name == "explain" and rows and "text" not in rows[0]:
            # Of an export of an earlier version.
            rows = self._rows("serving_default", columns)
        answers = [
            answer_of(row, n_best, explanation)
            for row, explanation in zip(rows, attentions, strict=True)
        ]
        if word_probabilities:
            self._add_words(inputs, answers)
        return answers

    def _add_words(self, inputs, answers):
        """Adds the words of the best answers to their records."""
        from kseq.pictures.piece_texts import words_of  # few need it

        texts = [answer.hypotheses[0].text for answer in answers]
        rows = self._rows("score", {self.source: inputs, "target": texts})
        for answer, row in zip(answers, rows, strict=True):
            if "token_log_probs" not in row:
                raise UserError(
                    "This model does not give the probabilities of words; an "
                    "export of an earlier version must be written again."
                )
            pieces = [piece.decode() for piece in row["target_tokens"] if piece]
            words, starts = words_of(pieces[:-1])  # without END
            log_probs = row["token_log_probs"][: len(pieces) - 1].astype(float)
            sums = np.add.reduceat(log_probs, starts) if words else np.zeros(0)
            answer.record["words"] = words
            answer.record["probabilities"] = rounded(np.exp(sums))

    def _check_attention(self):
        if "explain" not in self.signatures:
            raise UserError(
                "This model has no attention to its source: it has no "
                f"signature explain; it has "
                f"{', '.join(sorted(self.signatures))}."
            )

    def _rows(self, name, columns, progress=None):
        return predict_batches(
            self.signatures,
            name,
            self._columns(columns),
            self.batch_size,
            progress,
        )

    def _columns(self, columns):
        """The inputs as the signatures take them."""
        from_python = source_named(self.source).from_python
        given = columns.get(self.source)
        if from_python is None or not isinstance(given, list):
            return columns
        return {**columns, self.source: list(map(from_python, given))}


def _two_lists(phrases):
    """The phrases that each answer must have, and those that it must not."""
    for both in phrases:
        if not isinstance(both, tuple | list) or len(both) != 2:
            raise ArgumentError(
                "phrases must have two lists of strings for each input. "
                f"Received: {both!r:.200}"
            )
    return [required for required, _ in phrases], [no for _, no in phrases]


def _vectors(rows):
    if not rows:
        raise ValueError("Expected at least one text. Received: []")
    return np.stack([row["vector"] for row in rows])
