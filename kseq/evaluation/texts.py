"""Evaluation of a language model: likelihood of a text, continuations."""

import itertools
import math

from kseq.evaluation.score import Score, first_rows
from kseq.serving import TextLikelihood
from kseq.user_error import check_integers

_PROMPT = 40  # characters of a text that a model continues


class Texts:
    """Likelihood of text under a language model, and its continuations.

    Every token of the text is predicted once, from the up to `length` tokens
    before it, with END after each document:

        loss = mean of -log p(token),  perplexity = exp(loss)
        bits per character = sum of -log2 p(token) / characters

    Args:
        predictor: a `kseq.serving.GeneratorPredictor` of a run.
        documents: list of str.
        length: int, T, tokens of a row; by default those of the model.
        samples: int, texts that are continued.
        is_valid: function of a whole text, str -> bool, for text with a known
            rule. The documents are then continued from their middles, and the
            fraction of valid texts is a score; or None.

    Attributes:
        results: dict, name of a score -> `Score`, after `scores`.

    Raises:
        ValueError: if no document has text, or `samples` is not positive.
    """

    columns = ("prompt", "text", "continuation")
    hints = ()

    def __init__(
        self, predictor, documents, length=None, *, samples=20, is_valid=None
    ):
        check_integers(samples=samples)
        if not any(documents):
            raise ValueError(
                "There must be a document with text. "
                f"Received: documents={documents!r:.80}"
            )
        self.predictor = predictor
        self.is_valid = is_valid
        self.results = {}
        self._documents = len(documents)
        self._characters = sum(map(len, documents))
        self._prompts = list(
            itertools.islice(_prompts(documents, is_valid, samples), samples)
        )
        if length is None:
            length = predictor.model.max_length
        self._likelihood = TextLikelihood(predictor.served, documents, length)
        self._continued = []

    def __len__(self):
        return self._documents

    def scores(self, progress=None):
        """Computes the likelihood of the text, and continues parts of it.

        Args:
            progress: callable of the number of documents done since its last
                call; or None.

        Returns:
            A dict, name -> float: `loss`, `perplexity`,
            `bits_per_character`, and `valid` with `is_valid`.
        """
        batches, read, shown = len(self._likelihood), 0, 0

        def advance(count):
            nonlocal read, shown
            read += count
            documents = self._documents * read // batches
            if progress is not None:
                progress(documents - shown)
            shown = documents

        total, tokens = self._likelihood(advance)
        loss = total / max(tokens, 1)
        bits = total / math.log(2) / self._characters
        size = f"  tokens:{tokens}|characters:{self._characters}"
        self.results = {
            "loss": Score(loss, f"loss {loss:.4f}{size}"),
            "perplexity": Score(
                math.exp(loss), f"perplexity {math.exp(loss):.4f}{size}"
            ),
            "bits_per_character": Score(
                bits, f"bits per character {bits:.4f}{size}"
            ),
        }
        prompts = [prompt for prompt, _ in self._prompts]
        self._continued = self.predictor(prompts)
        if self.is_valid is not None:
            self.results["valid"] = self._valid()
        return {name: score.value for name, score in self.results.items()}

    def _valid(self):
        texts = [
            prompt + output
            for (prompt, _), output in zip(
                self._prompts, self._continued, strict=True
            )
        ]
        share = sum(map(bool, map(self.is_valid, texts))) / len(texts)
        return Score(share, f"valid {share:.2%}  texts:{len(texts)}")

    def report(self):
        """The scores as lines of text, after `scores`."""
        return [score.text for score in self.results.values()]

    def rows(self, count):
        """Prompts, what follows in the text, and the continuations."""
        prompts = [prompt for prompt, _ in self._prompts]
        texts = [text for _, text in self._prompts]
        return first_rows(count, prompts, texts, self._continued)

    def pictures(self, count):
        """There are none: an empty dict."""
        return {}


def _prompts(documents, is_valid, samples):
    """Prompts, and how the text continues after each."""
    if is_valid is not None:
        for text in documents:
            middle = len(text) // 2
            yield text[:middle], text[middle:]
        return
    whole = "".join(documents)
    for number in range(samples):
        start = number * len(whole) // samples
        end = start + _PROMPT
        yield whole[start:end], whole[end : end + _PROMPT]
