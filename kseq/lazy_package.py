"""Packages whose modules are imported when they are first used."""

import contextlib
import importlib.util
import sys
from types import ModuleType


class LazyPackage(ModuleType):
    """A package with the names of `_MODULES`, each from its module.

    Its modules are attributes, too, without being imported before. If a module
    cannot be imported, for whatever reason, an error says why.
    """

    def __getattr__(self, name):
        module = self.__dict__["_MODULES"].get(name)
        if module is not None:
            return import_name(f"{self.__name__}.{module}", name)
        path = f"{self.__name__}.{name}"
        if name.isidentifier() and importlib.util.find_spec(path):
            with attribute_errors_shown(path):
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


def make_lazy(name):
    """Makes a package a `LazyPackage`, whose names are those of its stub."""
    package = sys.modules[name]
    package._MODULES = stub_modules(package.__file__)
    package.__all__ = [*package._MODULES]
    package.__class__ = LazyPackage


def stub_modules(path):
    """The modules that names of a package come from, read from its stub.

    Editors and type checkers read it too: `__init__.pyi` beside `__init__.py`,
    with imports such as `from .text_files import read_lines as read_lines`.

    Args:
        path: str, of `__init__.py`.

    Returns:
        A dict: name -> module, relative to the package.
    """
    import ast  # not above: `import kseq` takes a millisecond

    with open(f"{path}i", encoding="utf-8") as file:
        stub = ast.parse(file.read())
    return {
        alias.name: statement.module
        for statement in stub.body
        for alias in statement.names
    }


def import_name(path, name):
    """The attribute `name` of the module `path`.

    Raises:
        ImportError: if there is none, or an AttributeError is raised where the
            module is imported.
    """
    with attribute_errors_shown(path):
        return getattr(importlib.import_module(path), name)


def lazy_module(path):
    """A module that is imported when one of its attributes is read."""
    return sys.modules.get(path) or _LazyModule(path)


class _LazyModule(ModuleType):
    """Has the attributes of the module of its name.

    `importlib.util.LazyLoader` puts the module into `sys.modules` before it is
    executed. Before Python 3.11.9 and 3.12.3, other threads read it there
    while the first of them still executes it.
    """

    def __getattribute__(self, name):
        return getattr(_import(self), name)

    def __setattr__(self, name, value):
        setattr(_import(self), name, value)

    def __delattr__(self, name):
        delattr(_import(self), name)

    def __dir__(self):
        return dir(_import(self))


def _import(lazy):
    path = ModuleType.__getattribute__(lazy, "__name__")
    with attribute_errors_shown(path):
        return importlib.import_module(path)


@contextlib.contextmanager
def attribute_errors_shown(path):
    """Raises an ImportError for an AttributeError, with its message.

    While an attribute of a package is looked up, `from package import name`
    and `hasattr` take any AttributeError for the answer that there is no such
    name, and drop its message. Other errors pass.

    Args:
        path: str, the module that is imported.
    """
    try:
        yield
    except AttributeError as error:
        raise ImportError(
            f"{path} cannot be imported: AttributeError: {error}", name=path
        ) from error
