"""Any JSON in the files of a run is read, or refused by one message."""

import contextlib
import copy
import dataclasses
import functools
import json
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import kseq
from kseq.command_line import recipe_options
from kseq.command_line.recipe_options import read_options
from kseq.files.json_files import nodes
from kseq.runs import RunDirectory
from kseq.user_error import UserError
from tests.recipes import load_recipe

hypothesis = pytest.importorskip("hypothesis")
strategies = hypothesis.strategies

NAMES = strategies.sampled_from(
    [
        *("class", "class_name", "config", "module", "registered_name"),
        *("preprocessor", "search", "max_length", "labels", "tokenizer"),
        *("units", "heads", "train", "columns", "dtype", "vocab_size"),
        *("Transformer", "BeamSearch", "TextPreprocessor", "kseq.models"),
        *("weights", "imagenet", "network", "MobileNet", "vocabulary"),
        *("ImagePreprocessor", "StringLookup", "keras.layers", "/etc/passwd"),
    ]
)
ANY_JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=5)
    | NAMES,
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(
            NAMES | strategies.text(max_size=5), inner, max_size=3
        )
    ),
    max_leaves=8,
)
NAMES_OF_FILES = ["config.json", "model.json", "task.json"]
RECIPE = load_recipe("translate_lstm").Config()
SETTINGS = {"deadline": None, "derandomize": True, "database": None}


@pytest.fixture(scope="module")
def whole(generators, run_of):
    with pytest.MonkeyPatch.context() as patch:
        # A slow machine prints no progress among the messages.
        patch.setattr("kseq.terminal._FIRST", 600)
        # To read the source of a class takes longer than all else.
        comments = functools.cache(recipe_options._comments)
        patch.setattr(recipe_options, "_comments", comments)
        for module in networks():
            patch.setattr(module.file_utils, "get_file", not_called)
        yield run_of(generators["lstm"])


def networks():
    """The modules of Keras that download weights."""
    names = [n for n in sys.modules if n.startswith("keras.src.applications.")]
    return [
        sys.modules[name]
        for name in names
        if hasattr(sys.modules[name], "file_utils")
    ]


def not_called(*args, **options):
    raise AssertionError(f"a download of {args}, {options}")


def changed(data, tree):
    """A JSON value with one of its parts replaced or removed."""
    tree = copy.deepcopy(tree)
    places = [
        (node, key)
        for node in nodes(tree)
        for key in (node if isinstance(node, dict) else range(len(node)))
    ]
    node, key = data.draw(strategies.sampled_from(places))
    if data.draw(strategies.booleans()):
        node[key] = data.draw(ANY_JSON)
    else:
        del node[key]
    return tree


@pytest.mark.parametrize("name", NAMES_OF_FILES)
@hypothesis.settings(max_examples=20, **SETTINGS)
@hypothesis.given(tree=ANY_JSON)
def test_any_json_is_read_or_one_message(whole, name, tree):
    read_or_refused(whole, name, tree)


@pytest.mark.parametrize("name", NAMES_OF_FILES)
@hypothesis.settings(max_examples=5, **SETTINGS)
@hypothesis.given(data=strategies.data())
def test_any_change_is_read_or_one_message(whole, name, data):
    tree = json.loads((whole / name).read_text("utf-8"))
    read_or_refused(whole, name, changed(data, tree))


def read_or_refused(whole, name, tree):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copytree(whole, Path(folder) / "run"))
        (path / name).write_text(json.dumps(tree), "utf-8")
        opened = read_config if name == "config.json" else kseq.load
        try:
            opened(path)
        except UserError as error:
            assert str(path) in str(error)
            assert len(str(error)) < 1000


def read_config(path):
    """Reads it as a run that resumes does, and one that starts from it."""
    words = ["--from", str(path)]
    with contextlib.suppress(UserError):
        read_options(RECIPE, RECIPE, words, prog="x", description="")
    RunDirectory(path).start(Config())


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1
