"""Recordings and their transcripts."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from kseq.data.files.labelled_examples import LabelledExamples
from kseq.data.files.saved_examples import numbered_texts
from kseq.data.files.stored_features import StoredFeatures


class Transcripts(NamedTuple):
    """Recordings and their transcripts.

    Args:
        names: list of str, or the rows of a file.
        texts: the same.
        features: StoredFeatures of these recordings and possibly of others, or
            None.
        numbers: of the recordings among the features, a list or an array.
        audio: function of the name of a recording: the bytes of its WAV file;
            None if there are only features.
        spans: only of built-in recordings: for each a list of (start, end) in
            seconds, one for each character of its text.
    """

    names: Sequence[str]
    texts: Sequence[str]
    features: StoredFeatures | None = None
    numbers: Sequence[int] | None = None
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
        return numbered_texts(self.numbers, self.texts)

    def raw(self, name: str) -> list:
        """The input of a served signature, "frames" or "audio"."""
        if name == "frames":
            return [self.features[number] for number in self.numbers]
        return [self.audio(name) for name in self.names]

    @property
    def labels(self) -> list[str]:
        """The texts, where each is a label."""
        return list(self.texts)

    def labelled(self, name: str) -> LabelledExamples:
        """The inputs `raw(name)` with their labels."""
        return LabelledExamples(self.names, self.raw(name), self.labels)
