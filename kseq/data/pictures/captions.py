"""Pictures and their captions."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from kseq.data.files.labelled_examples import LabelledExamples
from kseq.data.files.saved_examples import numbered_texts
from kseq.data.files.stored_features import StoredFeatures


class Captions(NamedTuple):
    """Pictures and their captions.

    Args:
        names: list of str, or the rows of a file.
        references: lists of str, the captions of each picture; a list, or the
            rows of a file.
        features: StoredFeatures of these pictures and possibly of others, or
            None.
        numbers: of the pictures among the features, a list or an array.
        picture: function of the name of a picture: its encoded bytes; None if
            there are only features.
        objects: only of built-in pictures: for each a dict, the words of an
            object -> the number of its cell.
    """

    names: Sequence[str]
    references: Sequence[list[str]]
    features: StoredFeatures | None = None
    numbers: Sequence[int] | None = None
    picture: Callable[[str], bytes] | None = None
    objects: list[dict[str, int]] | None = None

    def lines(self) -> Iterator[str]:
        """All captions."""
        for captions in self.references:
            yield from captions

    def pairs(self) -> tf.data.Dataset:
        """Each caption once: scalar strings (number of picture, caption)."""
        return numbered_texts(self.numbers, self.references)

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
