"""The tasks of Graves et al. 2014, arXiv:1410.5401, section 4.

Each is a class of sizes with the same attributes and methods:

- `input_dim` and `output_dim`, int;
- `sequences(count, seed)`, random `BinarySequences` of the same length, which
  depend only on the seed (2,) int32 and the sizes;
- `harder()`, dict, name -> the task with other sizes than in training.

A size is a pair, the smallest and the largest; one value is drawn for all
sequences of a batch.
"""

from kseq.lazy_package import make_lazy

make_lazy(__name__)
