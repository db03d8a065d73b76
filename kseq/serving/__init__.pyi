# ruff: noqa: I001  # the names of a module stay in one statement
from .answer import Answer as Answer, Hypothesis as Hypothesis
from .answer_stream import AnswerStream as AnswerStream
from .attention import Attention as Attention
from .classifier import Classifier as Classifier
from .classifier_predictor import ClassifierPredictor as ClassifierPredictor
from .ensemble import ensemble as ensemble
from .explained_document import ExplainedDocument as ExplainedDocument
from .generator import Generator as Generator
from .generator_predictor import GeneratorPredictor as GeneratorPredictor
from .head_attention import head_attention as head_attention
from .memory_use import MemoryUse as MemoryUse
from .retriever import Retriever as Retriever
from .saved_model import export as export
from .tagger import Tagger as Tagger
from .tagger_predictor import TaggerPredictor as TaggerPredictor
from .text_likelihood import TextLikelihood as TextLikelihood
from .transducer import Transducer as Transducer
from .transducer_predictor import TransducerPredictor as TransducerPredictor
