"""Pictures and their captions."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import tensorflow as tf

from kseq.data.files.labelled_examples import LabelledExamples
from kseq.data.files.stored_features import StoredFeatures


class Captions(NamedTuple):
    """Pictures and their captions.

    Args:
        names: list of str.
        references: list of lists of str, the captions of each picture.
        features: StoredFeatures of these pictures and possibly of others, or
            None.
        numbers: list of int, those of the pictures among the features.
        picture: function of the name of a picture: its encoded bytes; None if
            there are only features.
        objects: only of built-in pictures: for each a dict, the words of an
            object -> the number of its cell.
    """

    names: list[str]
    references: list[list[str]]
    features: StoredFeatures | None = None
    numbers: list[int] | None = None
    picture: Callable[[str], bytes] | None = None
    objects: list[dict[str, int]] | None = None

    def lines(self) -> Iterator[str]:
        """All captions."""
        for captions in self.references:
            yield from captions

    def pairs(self) -> tf.data.Dataset:
        """Each caption once: scalar strings (number of picture, caption)."""
        counts = map(len, self.references)
        numbers = [
            str(number)
            for number, count in zip(self.numbers, counts, strict=True)
            for _ in range(count)
        ]
        return tf.data.Dataset.from_tensor_slices((numbers, list(self.lines())))

    def raw(self, name: str) -> list:
        """The input of a served signature, "features" or "image"."""
        if name == "features":
            return [self.features[number] for number in self.numbers]
        return [self.picture(name) for name in self.names]

    @property
    def labels(self) -> list[str]:
        """The first captions, where each is a label."""
        return [captions[0] for captions in self.references]

    def labelled(self, name: str) -> LabelledExamples:
        """The inputs `raw(name)` with their labels."""
        return LabelledExamples(self.names, self.raw(name), self.labels)
