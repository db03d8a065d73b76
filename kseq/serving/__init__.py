"""Models with their preprocessors: text in, text or label out.

Its modules are imported when they are first used: an export needs no model
code.
"""

from kseq.lazy_package import make_lazy

make_lazy(__name__)
