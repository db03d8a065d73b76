from kseq.data.audio_preprocessor import AudioPreprocessor
from kseq.data.batches import (
    evaluation_batches,
    training_batches,
)
from kseq.data.caption_corpus import (
    CaptionCorpus,
    read_caption_corpus,
    read_captions,
    read_image_captions,
)
from kseq.data.captions import Captions
from kseq.data.corpus import Corpus, read_corpus
from kseq.data.data_error import DataError
from kseq.data.document_batches import document_batches
from kseq.data.document_corpus import DocumentCorpus, read_document_corpus
from kseq.data.document_preprocessor import DocumentPreprocessor
from kseq.data.documents import Documents, read_documents
from kseq.data.feature_files import read_features
from kseq.data.feature_preprocessor import FeaturePreprocessor
from kseq.data.frame_files import read_frames
from kseq.data.frame_preprocessor import FramePreprocessor
from kseq.data.image_preprocessor import ImagePreprocessor
from kseq.data.parallel_text import ParallelText, TextReport
from kseq.data.picture_features import NetworkOptions
from kseq.data.piece_prediction_batches import piece_prediction_batches
from kseq.data.piece_vectors import piece_vectors
from kseq.data.source import Source
from kseq.data.speech_corpus import (
    SpeechCorpus,
    read_speech_corpus,
    read_transcripts,
)
from kseq.data.stored_features import StoredFeatures
from kseq.data.teacher_forcing import teacher_forcing
from kseq.data.text_files import read_lines
from kseq.data.text_preprocessor import TextPreprocessor
from kseq.data.tokenizer import Tokenizer
from kseq.data.transcripts import Transcripts

__all__ = [
    "AudioPreprocessor",
    "CaptionCorpus",
    "Captions",
    "Corpus",
    "DataError",
    "DocumentCorpus",
    "DocumentPreprocessor",
    "Documents",
    "FeaturePreprocessor",
    "FramePreprocessor",
    "ImagePreprocessor",
    "NetworkOptions",
    "ParallelText",
    "Source",
    "SpeechCorpus",
    "StoredFeatures",
    "TextPreprocessor",
    "TextReport",
    "Tokenizer",
    "Transcripts",
    "document_batches",
    "evaluation_batches",
    "piece_prediction_batches",
    "piece_vectors",
    "read_caption_corpus",
    "read_captions",
    "read_corpus",
    "read_document_corpus",
    "read_documents",
    "read_features",
    "read_frames",
    "read_image_captions",
    "read_lines",
    "read_speech_corpus",
    "read_transcripts",
    "teacher_forcing",
    "training_batches",
]
