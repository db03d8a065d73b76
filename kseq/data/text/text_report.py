"""What is in parallel text."""

from collections.abc import Mapping
from typing import NamedTuple

from kseq.data.files.data_error import DataError
from kseq.data.files.reading_problems import reading_problems
from kseq.data.files.text_files import LONGEST_LINE


class TextReport(NamedTuple):
    """Counts by `ParallelText.check`, in pairs."""

    pairs: int = 0
    blank: int = 0
    too_long: int = 0
    invalid: int = 0
    joined: int = 0  # with a newline or tab inside, which becomes a space

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "TextReport":
        """The report of counts, of which those of 0 may be missing."""
        return cls(*(counts.get(name, 0) for name in cls._fields))

    @property
    def left_out(self) -> int:
        """Pairs that are not used."""
        return self.blank + self.too_long

    def problems(self, name, of_left_out: bool = True) -> list[str]:
        """What is wrong with the text `name`, one line per problem.

        Args:
            name: of the text.
            of_left_out: whether to include what `pairs` leaves out.
        """
        left_out = {
            "with a blank side": self.blank,
            f"with a line over {LONGEST_LINE} bytes": self.too_long,
        }
        kept = self.pairs - self.left_out, "pairs"
        lines = reading_problems(name, kept, left_out if of_left_out else {})
        if self.invalid:
            lines.append(
                f"{name}: {self.invalid} of {self.pairs} pairs are not valid "
                "UTF-8; invalid bytes become U+FFFD."
            )
        if self.joined:
            lines.append(
                f"{name}: {self.joined} of {self.pairs} pairs have a newline "
                "or a tab inside, which becomes a space."
            )
        return lines

    def refuse_empty(self, name):
        """Raises DataError if no pair of the text `name` is used."""
        if self.left_out == self.pairs:
            raise DataError(
                f"{name}: there is no pair to train on; of {self.pairs}, "
                f"{self.blank} have a blank side and {self.too_long} a "
                f"line over {LONGEST_LINE} bytes."
            )
