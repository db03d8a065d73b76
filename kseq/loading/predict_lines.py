"""Answers in a pipeline of Apache Beam."""

import os
from collections.abc import Collection

import apache_beam as beam
import tensorflow as tf
from apache_beam.metrics import Metrics
from apache_beam.ml.inference.base import ModelHandler, RunInference

from kseq.files.model_path import model_path
from kseq.loading.load import load
from kseq.process import start_tensorflow
from kseq.sources import source_named
from kseq.user_error import UserError, reason_of

_BATCH = 1024  # elements; `predict_batches` sorts them by length
_OF_THE_INPUT = (
    TypeError,
    ValueError,
    UserError,
    tf.errors.InvalidArgumentError,
)


class PredictLines(beam.PTransform):
    """Answers to the elements of a PCollection, with Beam's `RunInference`.

    An element is an input, such as a line of text, or a dict that has the
    input under the name that the signatures of the export give it, such as
    `text`. All other entries of the dict, such as an index, are kept.

    It gives two PCollections. `answers` has a dict for each element: what
    `kseq predict --json` prints, and the entries that were kept. `broken` has
    a dict for each element that the model refuses: `input`, the element, and
    `error`, a str. The other elements are answered.

    Up to 1,024 elements of a bundle are sorted by length and answered in
    batches of similar lengths. The model is loaded once in each process.

    Args:
        path: str or path of an export, see `kseq.load`. All workers read the
            version that is the newest when the pipeline is made.
        allow_ops: see `kseq.load`.

    Raises:
        UserError: if there is no such export.

    Example:
        >>> answers, broken = (
        ...     lines | PredictLines("saved_models/dates")
        ... )  # doctest: +SKIP
    """

    def __init__(
        self, path: str | os.PathLike, allow_ops: Collection[str] = ()
    ):
        super().__init__()
        self.path = os.path.abspath(model_path(path))
        self.allow_ops = allow_ops

    def expand(self, pcoll):
        results = pcoll | RunInference(_Handler(self.path, self.allow_ops))
        return results | beam.FlatMap(_record).with_outputs(
            "broken", main="answers"
        )


class _Handler(ModelHandler):
    """Gives pairs of an element and its record, or its error, a str."""

    def __init__(self, path, allow_ops):
        super().__init__(min_batch_size=_BATCH, max_batch_size=_BATCH)
        self.path = path
        self.allow_ops = allow_ops
        self._truncated = Metrics.counter("kseq", "truncated")

    def load_model(self):
        start_tensorflow(for_search=True)
        return load(self.path, allow_ops=self.allow_ops)

    def run_inference(self, batch, model, inference_args=None):
        try:
            answers = model.answers([_input(model, each) for each in batch])
        except _OF_THE_INPUT as error:
            if len(batch) == 1:
                reason = f"{type(error).__name__}: {reason_of(error)}"
                return [(batch[0], reason)]
            # The others of its batch are answered without it.
            half = len(batch) // 2
            return [
                *self.run_inference(batch[:half], model),
                *self.run_inference(batch[half:], model),
            ]
        self._truncated.inc(sum(answer.truncated for answer in answers))
        return [
            (each, {**_kept(model, each), **answer.record})
            for each, answer in zip(batch, answers, strict=True)
        ]


def _record(result):
    element, found = result
    if isinstance(found, str):
        broken = {"input": element, "error": found}
        return [beam.pvalue.TaggedOutput("broken", broken)]
    return [found]


def _input(model, element):
    if isinstance(element, dict):
        if model.source not in element:
            raise ValueError(
                f"expected an entry {model.source!r}; found "
                f"{', '.join(map(str, element)) or 'none'}."
            )
        element = element[model.source]
    types = source_named(model.source).types
    if types and not isinstance(element, types):
        raise TypeError(f"expected a text; found {element!r:.100}.")
    return element


def _kept(model, element):
    if not isinstance(element, dict):
        return {}
    return {key: element[key] for key in element if key != model.source}
