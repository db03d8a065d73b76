"""Opens runs and exports, which may be broken or hostile.

Its modules are imported when they are first used: an export needs no model
code.
"""

from kseq.lazy_package import make_lazy

make_lazy(__name__)
