"""Packages whose modules are imported when they are first used."""

import importlib.util
from types import ModuleType


class LazyPackage(ModuleType):
    """A package with the names of `_MODULES`, each from its module.

    Its modules are attributes, too, without being imported before.

    A package becomes one by

        _MODULES = {"read_lines": "text_files"}  # name: its module
        sys.modules[__name__].__class__ = LazyPackage
    """

    def __getattr__(self, name):
        module = self.__dict__["_MODULES"].get(name)
        if module is not None:
            module = importlib.import_module(f"{self.__name__}.{module}")
            return getattr(module, name)
        path = f"{self.__name__}.{name}"
        if name.isidentifier() and importlib.util.find_spec(path):
            return importlib.import_module(path)
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r}"
        )

    def __setattr__(self, name, value):
        # Python makes an imported module an attribute of its package. Where a
        # function has the name of its module, the attribute is the function.
        is_module = isinstance(value, ModuleType)
        if is_module and self.__dict__.get("_MODULES", {}).get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self):
        return [*self.__dict__, *self.__dict__["_MODULES"]]
