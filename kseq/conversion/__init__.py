"""Models of other toolkits, as runs of kseq, and runs as models of others."""

from kseq.conversion.marian import MarianModel, read_marian
from kseq.conversion.marian_export import export_marian

__all__ = ["MarianModel", "export_marian", "read_marian"]
