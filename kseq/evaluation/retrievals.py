"""Evaluation of retrieved answers by their ranks."""

import numpy as np

from kseq.evaluation.score import Score, first_rows
from kseq.user_error import check_integers

_TOP = (1, 5, 10)


class Retrievals:
    """Recall of the correct answer among the nearest candidates.

    The candidates of a source are its correct answer and a random sample of
    the distinct answers of all examples. In a tie the correct answer ranks
    last.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`; has the signatures
            `encode` and `encode_answers`.
        examples: has `contexts`, list of what the predictor is given, and
            `answers`, list of str, as `kseq.data.Dialogues` does.
        candidates: int, number of candidates, including the correct answer;
            fewer if the examples have fewer distinct answers.
        seed: int, of the random sample.

    Attributes:
        results: dict, `recall_at_1`, `recall_at_5` and `recall_at_10` ->
            `Score`, after `scores`.

    Raises:
        ValueError: if there is no example, or `candidates` is less than 2.

    Reference:
        Lowe et al. 2015, arXiv:1506.08909, recall@k.
    """

    columns = ("source", "answer", "nearest")
    hints = ()

    def __init__(self, predictor, examples, candidates=100, seed=0):
        check_integers(candidates=candidates, minimum=2)
        if not examples.answers:
            raise ValueError(
                "There must be at least one example. Received: answers=[]"
            )
        self.predictor = predictor
        self.sources = examples.contexts
        self.answers = examples.answers
        self.seed = seed
        self.texts = list(dict.fromkeys(self.answers))
        self.candidates = min(candidates, len(self.texts))
        self._wanted = candidates
        self._nearest = []
        self.results = {}

    def __len__(self):
        return len(self.sources)

    def scores(self, progress=None):
        """Ranks the candidates of all sources.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name -> float from 0 to 1.
        """
        vectors = self.predictor.encode(self.sources, progress)
        text_vectors = self.predictor.encode_answers(self.texts)
        numbers = {text: number for number, text in enumerate(self.texts)}
        draw = np.random.default_rng(self.seed)
        ranks, self._nearest = [], []
        for vector, answer in zip(vectors, self.answers, strict=True):
            chosen = self._sample(draw, numbers[answer])
            similarities = text_vectors[chosen] @ vector
            # The correct answer is the first candidate; in a tie it ranks last.
            farther = np.sum(similarities < similarities[0])
            ranks.append(self.candidates - farther)
            best = np.argmax(similarities[::-1])
            self._nearest.append(self.texts[chosen[::-1][best]])
        self.results = {
            f"recall_at_{top}": self._recall(np.array(ranks), top)
            for top in _TOP
        }
        return {name: score.value for name, score in self.results.items()}

    def _sample(self, draw, right):
        """The indices of the candidates, that of the correct answer first."""
        others = draw.choice(
            len(self.texts) - 1, self.candidates - 1, replace=False
        )
        return np.concatenate([[right], others + (others >= right)])

    def _recall(self, ranks, top):
        value = float(np.mean(ranks <= top))
        return Score(
            value,
            f"recall@{top} {100 * value:.2f} %  "
            f"candidates:{self.candidates}|seed:{self.seed}",
        )

    def report(self):
        """The scores as lines of text, after `scores`."""
        lines = [score.text for score in self.results.values()]
        if self.candidates < self._wanted:
            lines.append(
                f"fewer than {self._wanted} candidates: the examples have "
                "fewer different answers"
            )
        return lines

    def rows(self, count):
        """The first sources, answers and nearest candidates, after `scores`.

        The turns of a dialogue are separated by slashes.
        """
        sources = map(_in_a_line, self.sources)
        return first_rows(count, sources, self.answers, self._nearest)

    def pictures(self, count):
        """There are none: an empty dict."""
        return {}


def _in_a_line(source):
    return source if isinstance(source, str) else " / ".join(source)
