"""Evaluation of generated texts against their references."""

from kseq.evaluation.comet import with_sources
from kseq.evaluation.line_statistics import scores_and_statistics
from kseq.evaluation.metrics import bleu, chrf, exact_match
from kseq.evaluation.resampling import with_intervals
from kseq.evaluation.score import chunks, first_rows, listed


class Translations:
    """Texts that a predictor generates, scored against references.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        pairs: finite `tf.data.Dataset` of strings (source, reference), an
            example each, or a list of (source, references), each source with a
            list of them, see `kseq.data.Corpus.examples`.
        metrics: functions of outputs and references, see `Score`.
        inputs: list of what the predictor is given for each source, such as
            features of the picture that a source names; by default the
            sources.
        draw: function of a source and its `kseq.serving.Attention`, which
            gives a PNG, bytes; by default the attention is drawn as in a
            notebook.
        notes: function, gives more lines of the report.

    Attributes:
        outputs: list of str, the generated texts, after `generate` or `scores`.
        results: dict, name of the metric -> `Score`, after `scores`.
    """

    columns = ("source", "reference", "output")
    hints = ()

    def __init__(
        self,
        predictor,
        pairs,
        metrics=(bleu, chrf, exact_match),
        *,
        inputs=None,
        draw=None,
        notes=list,
    ):
        self.predictor = predictor
        if not isinstance(pairs, list):
            pairs = [
                [text.decode("utf-8", "replace") for text in pair]
                for pair in pairs.as_numpy_iterator()
            ]
        self.sources, self.references = map(list, zip(*pairs, strict=True))
        self.metrics = with_sources(
            metrics, self.sources if inputs is None else None
        )
        self.inputs = self.sources if inputs is None else inputs
        self.draw = draw or _draw
        self.notes = notes
        self.outputs = []
        self.results = {}
        self._statistics = {}  # of `results`

    def __len__(self):
        return len(self.sources)

    def scores(self, progress=None):
        """Generates all texts and scores them.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name of the metric -> float.
        """
        self.generate(progress)
        self.results, self._statistics = scores_and_statistics(
            self.metrics, self.outputs, self.references
        )
        return {name: score.value for name, score in self.results.items()}

    def generate(self, progress=None):
        """Generates all texts, as `outputs`, without scoring them.

        Args:
            progress: see `kseq.serving.predict_batches`.
        """
        self.outputs = []
        for inputs in chunks(self.inputs):
            answers = self.predictor.answers(inputs, progress=progress)
            self.outputs += [answer.hypotheses[0].text for answer in answers]

    def report(self):
        """The scores as lines of text, after `scores`.

        Where lines can be resampled, they have 95 % confidence intervals.
        """
        scores = with_intervals(
            [*self.results.values()],
            self.metrics,
            self.outputs,
            self.references,
            self._statistics,
        )
        return [*scores, *self.notes()]

    def rows(self, count):
        """The first sources, references and outputs, after `scores`."""
        references = map(" / ".join, listed(self.references))
        return first_rows(count, self.sources, references, self.outputs)

    def pictures(self, count):
        """The attention of the first answers: a dict, name -> PNG."""
        if "explain" not in self.predictor.signatures:
            return {}
        attentions = self.predictor.attention(self.inputs[:count])
        return {
            f"attention/{number}": self.draw(source, attention)
            for number, (source, attention) in enumerate(
                zip(self.sources, attentions, strict=False)
            )
        }


def _draw(_, attention):
    return attention._repr_png_()
