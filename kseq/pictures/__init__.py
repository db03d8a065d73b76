"""Attention, confusion matrices and documents as pictures and pages."""

from kseq.pictures.attention_picture import attention_picture
from kseq.pictures.confusion_picture import confusion_picture
from kseq.pictures.document_picture import document_picture
from kseq.pictures.explanation_page import explanation_page

__all__ = [
    "attention_picture",
    "confusion_picture",
    "document_picture",
    "explanation_page",
]
