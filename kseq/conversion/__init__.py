"""Models of other toolkits, as runs of kseq."""

from kseq.conversion.marian import MarianModel, read_marian

__all__ = ["MarianModel", "read_marian"]
