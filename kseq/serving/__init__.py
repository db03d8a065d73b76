"""A model with what makes it of use: text in, text or label out."""

from kseq.serving.classifier import Classifier
from kseq.serving.explained_document import (
    ExplainedDocument,
    explained_document,
    explained_documents,
)
from kseq.serving.export import export
from kseq.serving.load import load_export
from kseq.serving.load_model import load_model
from kseq.serving.translator import Translator

__all__ = [
    "Classifier",
    "ExplainedDocument",
    "Translator",
    "explained_document",
    "explained_documents",
    "export",
    "load_export",
    "load_model",
]
