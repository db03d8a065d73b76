from kseq.data.batches import (
    evaluation_batches,
    shifted,
    training_batches,
)
from kseq.data.corpus import Corpus, read_corpus
from kseq.data.data_error import DataError
from kseq.data.document_batches import document_batches
from kseq.data.document_corpus import DocumentCorpus, read_document_corpus
from kseq.data.document_tokenizer import DocumentTokenizer
from kseq.data.documents import Documents, read_documents
from kseq.data.language_model_batches import language_model_batches
from kseq.data.parallel_text import ParallelText, TextReport, count_overlap
from kseq.data.tokenizer import Tokenizer
from kseq.data.word_vectors import word_vectors

__all__ = [
    "Corpus",
    "DataError",
    "DocumentCorpus",
    "DocumentTokenizer",
    "Documents",
    "ParallelText",
    "TextReport",
    "Tokenizer",
    "count_overlap",
    "document_batches",
    "evaluation_batches",
    "language_model_batches",
    "read_corpus",
    "read_document_corpus",
    "read_documents",
    "shifted",
    "training_batches",
    "word_vectors",
]
