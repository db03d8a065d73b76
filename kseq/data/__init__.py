"""Files to batches: what is trained on, checked and turned into ids.

Its modules are imported when they are first used: files are checked without
TensorFlow.
"""

from kseq.lazy_package import make_lazy

make_lazy(__name__)
