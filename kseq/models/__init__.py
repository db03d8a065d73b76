"""Functional models, built of `kseq.layers`."""

from kseq.models.exact_model import ExactModel, TokenLosses
from kseq.models.flat_attention import FlatAttention
from kseq.models.hierarchical_attention import HierarchicalAttention
from kseq.models.lstm_seq2seq import LSTMSeq2Seq
from kseq.models.piece_prediction import PiecePrediction
from kseq.models.transformer import Transformer
from kseq.models.transformer_classifier import TransformerClassifier

__all__ = [
    "ExactModel",
    "FlatAttention",
    "HierarchicalAttention",
    "LSTMSeq2Seq",
    "PiecePrediction",
    "TokenLosses",
    "Transformer",
    "TransformerClassifier",
]
