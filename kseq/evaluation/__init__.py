"""Answers judged by references and labels."""

from kseq.evaluation.classification_scores import classification_scores
from kseq.evaluation.label_report import label_report
from kseq.evaluation.map_lines import map_lines
from kseq.evaluation.report import report
from kseq.evaluation.translation_scores import translation_scores

__all__ = [
    "classification_scores",
    "label_report",
    "map_lines",
    "report",
    "translation_scores",
]
