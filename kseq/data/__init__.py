from kseq.data.batches import (
    evaluation_batches,
    shifted,
    training_batches,
)
from kseq.data.corpus import Corpus, read_corpus
from kseq.data.data_error import DataError
from kseq.data.parallel_text import ParallelText, TextReport, count_overlap
from kseq.data.tokenizer import Tokenizer

__all__ = [
    "Corpus",
    "DataError",
    "ParallelText",
    "TextReport",
    "Tokenizer",
    "count_overlap",
    "evaluation_batches",
    "read_corpus",
    "shifted",
    "training_batches",
]
