"""A model with what makes it of use: text in, text or label out."""

from kseq.serving.classifier import Classifier
from kseq.serving.export import export
from kseq.serving.load import load_export
from kseq.serving.translator import Translator

__all__ = [
    "Classifier",
    "Translator",
    "export",
    "load_export",
]
