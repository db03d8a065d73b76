"""Functional models, built of `kseq.layers`."""

from kseq.models.exact_model import ExactModel
from kseq.models.lstm_seq2seq import LSTMSeq2Seq
from kseq.models.transformer import Transformer

__all__ = ["ExactModel", "LSTMSeq2Seq", "Transformer"]
