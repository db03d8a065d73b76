"""The tasks of Graves et al. 2014, arXiv:1410.5401, section 4.

Each is a class of sizes with the same attributes and methods:

- `input_dim` and `output_dim`, int;
- `sequences(count, seed)`, random `BinarySequences` of the same length, which
  depend on nothing but the seed (2,) int32 and the sizes;
- `harder()`, dict, name -> the task in other sizes than those of training.

A size is a pair, the smallest and the largest; one value is drawn for all
sequences of a batch.
"""

from kseq.data.built_in.algorithms.associative_recall import AssociativeRecall
from kseq.data.built_in.algorithms.binary_sequences import BinarySequences
from kseq.data.built_in.algorithms.copy_sequence import CopySequence
from kseq.data.built_in.algorithms.dynamic_ngrams import DynamicNgrams
from kseq.data.built_in.algorithms.priority_sort import PrioritySort
from kseq.data.built_in.algorithms.repeat_copy import RepeatCopy

__all__ = [
    "AssociativeRecall",
    "BinarySequences",
    "CopySequence",
    "DynamicNgrams",
    "PrioritySort",
    "RepeatCopy",
]
