from kseq.layers.attention_decoder import AttentionDecoder
from kseq.layers.attention_named import attention_named
from kseq.layers.attention_pooling import AttentionPooling
from kseq.layers.attention_scores import (
    BahdanauAttention,
    LocationAttention,
    LuongAttention,
)
from kseq.layers.dropout import Dropout, PieceDropout, SentenceDropout
from kseq.layers.flatten_sentences import FlattenSentences
from kseq.layers.gated_convolution import GatedConvolution
from kseq.layers.grid_encoder import GridEncoder
from kseq.layers.hierarchical_bahdanau_attention import (
    HierarchicalBahdanauAttention,
)
from kseq.layers.hierarchical_encoder import HierarchicalEncoder
from kseq.layers.layer_normalization import LayerNormalization
from kseq.layers.local_attention import LocalAttention
from kseq.layers.location_aware_attention import LocationAwareAttention
from kseq.layers.multi_head_attention import MultiHeadAttention
from kseq.layers.neural_turing_machine import NeuralTuringMachine
from kseq.layers.ngram_logits import NgramLogits
from kseq.layers.piece_embedding import PieceEmbedding
from kseq.layers.pointer_generator import PointerGenerator
from kseq.layers.positional_encoding import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from kseq.layers.pyramidal_encoder import PyramidalEncoder
from kseq.layers.recurrent_pooling import RecurrentPooling
from kseq.layers.sentence_encoder import SentenceEncoder
from kseq.layers.similarity import NormalizedProjection, ScaledSimilarity
from kseq.layers.spec_augment import SpecAugment
from kseq.layers.transformer_decoder_block import TransformerDecoderBlock
from kseq.layers.transformer_encoder_block import TransformerEncoderBlock

__all__ = [
    "AttentionDecoder",
    "AttentionPooling",
    "BahdanauAttention",
    "Dropout",
    "FlattenSentences",
    "GatedConvolution",
    "GridEncoder",
    "HierarchicalBahdanauAttention",
    "HierarchicalEncoder",
    "LayerNormalization",
    "LearnedPositionalEmbedding",
    "LocalAttention",
    "LocationAttention",
    "LocationAwareAttention",
    "LuongAttention",
    "MultiHeadAttention",
    "NeuralTuringMachine",
    "NgramLogits",
    "NormalizedProjection",
    "PieceDropout",
    "PieceEmbedding",
    "PointerGenerator",
    "PyramidalEncoder",
    "RecurrentPooling",
    "ScaledSimilarity",
    "SentenceDropout",
    "SentenceEncoder",
    "SinusoidalPositionalEncoding",
    "SpecAugment",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "attention_named",
]
