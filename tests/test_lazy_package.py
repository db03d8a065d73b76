"""A module that cannot be imported says why, wherever it is imported from."""

import ast
import concurrent.futures
import importlib
import sys
from pathlib import Path

import pytest

import kseq
from kseq.lazy_package import lazy_module, stub_modules

KSEQ = Path(kseq.__file__).parent
LAZY = sorted(
    str(path.parent.relative_to(KSEQ)) for path in KSEQ.rglob("__init__.pyi")
)

PACKAGE = """
import sys

from kseq.lazy_package import LazyPackage

_MODULES = {"Tokenizer": "tokenizer"}
sys.modules[__name__].__class__ = LazyPackage
"""
BROKEN = {
    "import os\nos.no_such_thing\n": "'os' has no attribute 'no_such_thing'",
    "class Other:\n    pass\n": "has no attribute 'Tokenizer'",
    "import no_such_module\n": "No module named 'no_such_module'",
    "raise ImportError('libcudart.so: not found')\n": "libcudart.so",
    "raise OSError('a broken file')\n": "a broken file",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A function: writes a package with a module of this text."""
    monkeypatch.syspath_prepend(tmp_path)

    def package(text):
        folder = tmp_path / "lazy_kseq"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text(PACKAGE)
        (folder / "tokenizer.py").write_text(text)
        importlib.invalidate_caches()

    yield package
    for name in [name for name in sys.modules if name.startswith("lazy_kseq")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "statement",
    [
        "from lazy_kseq import Tokenizer",
        "import lazy_kseq; lazy_kseq.Tokenizer",
        "import lazy_kseq; hasattr(lazy_kseq, 'Tokenizer')",
    ],
)
@pytest.mark.parametrize("text", BROKEN)
def test_the_reason_is_shown(package, statement, text):
    package(text)
    with pytest.raises((ImportError, OSError), match=BROKEN[text]) as caught:
        exec(statement, {})
    if "AttributeError" in str(caught.value):
        assert isinstance(caught.value.__cause__, AttributeError)


def test_a_module_as_an_attribute_shows_it_too(package):
    package("import os\nos.no_such_thing\n")
    with pytest.raises(ImportError, match="no_such_thing"):
        exec("from lazy_kseq import tokenizer", {})


@pytest.mark.parametrize("text", [t for t in BROKEN if "class" not in t])
def test_a_module_that_is_imported_later_shows_it_too(package, text):
    """Of `kseq.layers`, say, that is an attribute of `kseq`."""
    package(text)
    importlib.import_module("lazy_kseq")
    module = lazy_module("lazy_kseq.tokenizer")
    assert "lazy_kseq.tokenizer" not in sys.modules
    for _ in range(2):
        with pytest.raises((ImportError, OSError), match=BROKEN[text]):
            hasattr(module, "Tokenizer")


def test_a_module_imported_later_is_that_module(package):
    package("class Tokenizer:\n    pass\n")
    lazy = lazy_module("lazy_kseq.tokenizer")
    lazy.Tokenizer = "changed"
    module = importlib.import_module("lazy_kseq.tokenizer")
    assert lazy_module("lazy_kseq.tokenizer") is module
    assert module.Tokenizer == lazy.Tokenizer == "changed"
    assert lazy.__file__ == module.__file__
    assert dir(lazy) == dir(module)
    del lazy.Tokenizer
    assert not hasattr(module, "Tokenizer")


def test_threads_wait_for_a_module_that_another_imports(package):
    package("import time\ntime.sleep(0.2)\nclass Tokenizer:\n    pass\n")
    lazy = lazy_module("lazy_kseq.tokenizer")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = [pool.submit(getattr, lazy, "Tokenizer") for _ in range(4)]
    [one] = {future.result() for future in found}
    assert one is lazy.Tokenizer


def test_what_is_not_there_is_an_attribute_error(package):
    package("class Tokenizer:\n    pass\n")
    exec("from lazy_kseq import Tokenizer, tokenizer", {})
    with pytest.raises(ImportError, match="cannot import name 'Tokeniser'"):
        exec("from lazy_kseq import Tokeniser", {})
    module = importlib.import_module("lazy_kseq")
    assert not hasattr(module, "Tokeniser")


def names_defined_in(path):
    """By classes, functions, assignments and imports at the top level."""
    for node in ast.parse(path.read_text("utf-8")).body:
        yield from (alias.asname for alias in getattr(node, "names", ()))
        yield getattr(node, "name", None)
        yield from (
            getattr(each, "id", None) for each in getattr(node, "targets", ())
        )


@pytest.mark.parametrize("package", LAZY)
def test_names_of_a_stub_are_those_of_their_modules(package):
    stub = KSEQ / package / "__init__.pyi"
    modules = stub_modules(stub.with_suffix(".py"))
    assert modules
    for name, module in modules.items():
        path = stub.parent.joinpath(*module.split("."))
        assert name in {*names_defined_in(path.with_suffix(".py"))}


def test_editors_see_what_is_imported_when_it_is_used():
    for node in ast.parse((KSEQ / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.If):
            names = {alias.asname for each in node.body for alias in each.names}
            assert names == {*kseq._ROOMS, *kseq._FUNCTIONS}
