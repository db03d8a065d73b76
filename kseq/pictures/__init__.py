"""Attention, confusion matrices and documents as pictures and pages."""

from kseq.pictures.attention_page import attention_page
from kseq.pictures.attention_picture import attention_picture
from kseq.pictures.comparison_page import comparison_page
from kseq.pictures.confusion_picture import confusion_picture
from kseq.pictures.document_page import document_page
from kseq.pictures.document_picture import document_picture
from kseq.pictures.grid_picture import grid_picture
from kseq.pictures.learning_curve_picture import learning_curve_picture
from kseq.pictures.memory_page import memory_page
from kseq.pictures.memory_picture import memory_picture
from kseq.pictures.rates_picture import rates_picture
from kseq.pictures.reliability_picture import reliability_picture
from kseq.pictures.speech_picture import speech_picture
from kseq.pictures.turn_attention_picture import turn_attention_picture

__all__ = [
    "attention_page",
    "attention_picture",
    "comparison_page",
    "confusion_picture",
    "document_page",
    "document_picture",
    "grid_picture",
    "learning_curve_picture",
    "memory_page",
    "memory_picture",
    "rates_picture",
    "reliability_picture",
    "speech_picture",
    "turn_attention_picture",
]
