"""Opens runs and exports, which may be broken or hostile.

Its modules are imported when they are first used: an export needs no model
code.
"""

import sys

from kseq.lazy_package import LazyPackage, stub_modules

_MODULES = stub_modules(__file__)
__all__ = [*_MODULES]

sys.modules[__name__].__class__ = LazyPackage
