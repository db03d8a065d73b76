"""Models of other toolkits, as runs of kseq, and runs as models of others."""

from kseq.conversion.converted_model import ConvertedModel
from kseq.conversion.marian import read_marian
from kseq.conversion.marian_export import export_marian
from kseq.conversion.opennmt_tf import read_opennmt_tf

__all__ = [
    "ConvertedModel",
    "export_marian",
    "read_marian",
    "read_opennmt_tf",
]
