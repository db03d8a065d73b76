"""Recordings and their transcripts."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import tensorflow as tf

from kseq.data.files.labelled_examples import LabelledExamples
from kseq.data.files.stored_features import StoredFeatures


class Transcripts(NamedTuple):
    """Recordings and their transcripts.

    Args:
        names: list of str.
        texts: list of str.
        features: StoredFeatures of these recordings and possibly of others, or
            None.
        numbers: list of int, those of the recordings among the features.
        audio: function of the name of a recording: the bytes of its WAV file;
            None if there are only features.
        spans: only of built-in recordings: for each a list of (start, end) in
            seconds, one for each character of its text.
    """

    names: list[str]
    texts: list[str]
    features: StoredFeatures | None = None
    numbers: list[int] | None = None
    audio: Callable[[str], bytes] | None = None
    spans: list[list[tuple[float, float]]] | None = None

    def some(self, places) -> "Transcripts":
        """Those at some places, of recordings that are not built-in."""
        return self._replace(
            **{
                field: [getattr(self, field)[place] for place in places]
                for field in ("names", "texts", "numbers")
            }
        )

    def lines(self) -> Iterator[str]:
        """All transcripts."""
        return iter(self.texts)

    def pairs(self) -> tf.data.Dataset:
        """Scalar strings (number of recording, transcript)."""
        numbers = list(map(str, self.numbers))
        return tf.data.Dataset.from_tensor_slices((numbers, self.texts))

    def raw(self, name: str) -> list:
        """The input of a served signature, "frames" or "audio"."""
        if name == "frames":
            return [self.features[number] for number in self.numbers]
        return [self.audio(name) for name in self.names]

    @property
    def labels(self) -> list[str]:
        """The texts, where each is a label."""
        return self.texts

    def labelled(self, name: str) -> LabelledExamples:
        """The inputs `raw(name)` with their labels."""
        return LabelledExamples(self.names, self.raw(name), self.labels)
