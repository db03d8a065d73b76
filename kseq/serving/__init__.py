"""Models with their preprocessors: text in, text or label out.

Its modules are imported when they are first used: an export needs no model
code.
"""

import sys

from kseq.lazy_package import LazyPackage

_MODULES = {
    "Answer": "answer",
    "Attention": "attention",
    "Classifier": "classifier",
    "ClassifierPredictor": "classifier_predictor",
    "ExplainedDocument": "explained_document",
    "Generator": "generator",
    "GeneratorPredictor": "generator_predictor",
    "Hypothesis": "answer",
    "MemoryUse": "memory_use",
    "PredictLines": "predict_lines",
    "Retriever": "retriever",
    "Tagger": "tagger",
    "TaggerPredictor": "tagger_predictor",
    "TextLikelihood": "text_likelihood",
    "Transducer": "transducer",
    "TransducerPredictor": "transducer_predictor",
    "export": "saved_model",
    "head_attention": "head_attention",
    "load": "load",
    "load_export": "load_export",
    "load_model": "load_run",
    "load_run": "load_run",
}
__all__ = [*_MODULES]

sys.modules[__name__].__class__ = LazyPackage
