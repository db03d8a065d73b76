"""A model with what makes it of use: text in, text or label out."""

from kseq.serving.answer import Answer, Hypothesis
from kseq.serving.attention import Attention
from kseq.serving.classifier import Classifier
from kseq.serving.classifier_predictor import ClassifierPredictor
from kseq.serving.explained_document import ExplainedDocument
from kseq.serving.generator import Generator
from kseq.serving.generator_predictor import GeneratorPredictor
from kseq.serving.head_attention import head_attention
from kseq.serving.load import load
from kseq.serving.load_export import load_export
from kseq.serving.load_run import load_model, load_run
from kseq.serving.saved_model import export

__all__ = [
    "Answer",
    "Attention",
    "Classifier",
    "ClassifierPredictor",
    "ExplainedDocument",
    "Generator",
    "GeneratorPredictor",
    "Hypothesis",
    "export",
    "head_attention",
    "load",
    "load_export",
    "load_model",
    "load_run",
]
