"""Models with their preprocessors: text in, text or label out.

Its modules are imported when they are first used: an export needs no model
code.
"""

import importlib
import sys
from types import ModuleType

_MODULES = {
    "Answer": "answer",
    "Attention": "attention",
    "Classifier": "classifier",
    "ClassifierPredictor": "classifier_predictor",
    "ExplainedDocument": "explained_document",
    "Generator": "generator",
    "GeneratorPredictor": "generator_predictor",
    "Hypothesis": "answer",
    "export": "saved_model",
    "head_attention": "head_attention",
    "load": "load",
    "load_export": "load_export",
    "load_model": "load_run",
    "load_run": "load_run",
}
__all__ = [*_MODULES]


class _Room(ModuleType):
    """A package whose functions have the names of their modules.

    Python makes an imported module an attribute of its package; here the
    attribute is the function instead.
    """

    def __setattr__(self, name, value):
        if isinstance(value, ModuleType) and _MODULES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    return getattr(module, name)


def __dir__():
    return [*globals(), *__all__]


sys.modules[__name__].__class__ = _Room
