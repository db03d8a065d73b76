"""Generated texts, judged by their references."""

import itertools

from kseq.evaluation.bleu import bleu
from kseq.evaluation.chrf import chrf
from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.score import scores_of
from kseq.pictures import attention_picture


class Translations:
    """Texts that a predictor generates, judged by their references.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        pairs: finite `tf.data.Dataset` of strings (source, reference).
        metrics: functions of outputs and references, see `Score`.

    Attributes:
        results: dict, name of the metric -> `Score`, after `scores`.
    """

    columns = ("source", "reference", "output")
    hints = ()

    def __init__(self, predictor, pairs, metrics=(bleu, chrf, exact_match)):
        self.predictor = predictor
        pairs = pairs.as_numpy_iterator()
        self.sources, self.references = (
            [text.decode("utf-8", "replace") for text in texts]
            for texts in zip(*pairs, strict=True)
        )
        self.metrics = metrics
        self._outputs = []
        self.results = {}

    def __len__(self):
        return len(self.sources)

    def scores(self, progress=None):
        """Generates all texts and judges them.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name of the metric -> float.
        """
        answers = self.predictor.answers(self.sources, progress=progress)
        self._outputs = [answer.hypotheses[0].text for answer in answers]
        self.results = scores_of(self.metrics, self._outputs, self.references)
        return {name: score.value for name, score in self.results.items()}

    def report(self):
        """The scores as lines of text, after `scores`."""
        return [score.text for score in self.results.values()]

    def rows(self, count):
        """The first sources, references and outputs, after `scores`."""
        rows = zip(self.sources, self.references, self._outputs, strict=True)
        return list(itertools.islice(rows, count))

    def pictures(self, count):
        """The attention of the first answers: a dict, name -> PNG."""
        if "explain" not in self.predictor.signatures:
            return {}
        attentions = self.predictor.attention(self.sources[:count])
        return {
            f"attention/{number}": attention_picture(
                attention.weights,
                attention.source_tokens,
                attention.target_tokens,
            )
            for number, attention in enumerate(attentions)
        }
