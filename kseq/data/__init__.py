"""Files to batches: what is trained on, checked and turned into ids.

Its modules are imported when they are first used: files are checked without
TensorFlow.
"""

import sys

from kseq.lazy_package import LazyPackage, stub_modules

_MODULES = stub_modules(__file__)
__all__ = [*_MODULES]

sys.modules[__name__].__class__ = LazyPackage
