"""Recordings and their transcripts."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.labelled_examples import LabelledExamples
from kseq.data.files.ragged_array import RaggedArray
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


def save_transcripts(path: str | os.PathLike, transcripts: Transcripts):
    """Writes files that begin with a path: names, texts and numbers."""
    names = map(os.fsencode, transcripts.names)
    Path(f"{path}.names").write_bytes(b"\0".join(names))
    Path(f"{path}.texts").write_bytes("\n".join(transcripts.texts).encode())
    np.array(transcripts.numbers, np.int64).tofile(f"{path}.numbers")


def save_audio(path: str | os.PathLike, transcripts: Transcripts):
    """Writes the WAV files of the recordings for `open_transcripts`."""
    ends = [0]
    with open(f"{path}.audio.values", "wb") as file:
        for name in transcripts.names:
            file.write(transcripts.audio(name))
            ends.append(file.tell())
    np.array(ends, np.int64).tofile(f"{path}.audio.offsets")


def open_transcripts(
    path: str | os.PathLike, features: StoredFeatures
) -> Transcripts:
    """Opens what `save_transcripts` has written, and `save_audio` if it has.

    Args:
        path: that was given to them.
        features: what the numbers are those of.
    """
    names = Path(f"{path}.names").read_bytes().split(b"\0")
    names = list(map(os.fsdecode, names))
    audio = None
    if os.path.isfile(f"{path}.audio.values"):
        size = os.path.getsize(f"{path}.audio.values")
        rows = RaggedArray.open(f"{path}.audio", "uint8", (size,))
        places = {name: place for place, name in enumerate(names)}

        def audio(name):
            return rows[places[name]].tobytes()

    return Transcripts(
        names,
        Path(f"{path}.texts").read_text("utf-8").split("\n"),
        features,
        np.fromfile(f"{path}.numbers", np.int64).tolist(),
        audio,
    )
