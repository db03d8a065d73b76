from .associative_recall import AssociativeRecall as AssociativeRecall
from .binary_sequences import BinarySequences as BinarySequences
from .copy_sequence import CopySequence as CopySequence
from .dynamic_ngrams import DynamicNgrams as DynamicNgrams
from .priority_sort import PrioritySort as PrioritySort
from .repeat_copy import RepeatCopy as RepeatCopy
