"""Functional models, built of `kseq.layers`."""

from kseq.models.binary_rnn import BinaryRNN
from kseq.models.conv_seq2seq import ConvSeq2Seq
from kseq.models.dual_encoder import DualEncoder
from kseq.models.exact_model import ExactModel, TokenLosses
from kseq.models.feature_classifier import FeatureClassifier
from kseq.models.flat_attention import FlatAttention
from kseq.models.hierarchical_attention import HierarchicalAttention
from kseq.models.lstm_lm import LSTMLM
from kseq.models.lstm_seq2seq import LSTMSeq2Seq
from kseq.models.lstm_tagger import LSTMTagger
from kseq.models.masked_prediction import MaskedPrediction
from kseq.models.piece_prediction import PiecePrediction
from kseq.models.transformer import Transformer
from kseq.models.transformer_classifier import TransformerClassifier
from kseq.models.transformer_lm import TransformerLM
from kseq.models.transformer_tagger import TransformerTagger

__all__ = [
    "LSTMLM",
    "BinaryRNN",
    "ConvSeq2Seq",
    "DualEncoder",
    "ExactModel",
    "FeatureClassifier",
    "FlatAttention",
    "HierarchicalAttention",
    "LSTMSeq2Seq",
    "LSTMTagger",
    "MaskedPrediction",
    "PiecePrediction",
    "TokenLosses",
    "Transformer",
    "TransformerClassifier",
    "TransformerLM",
    "TransformerTagger",
]
