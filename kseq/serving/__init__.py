"""A model with its tokenizers and its search: text in, text out."""

from kseq.serving.export import export
from kseq.serving.load import load_export
from kseq.serving.translator import Translator

__all__ = ["Translator", "export", "load_export"]
