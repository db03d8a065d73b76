"""The recipes as modules."""

import importlib.util
import sys
from pathlib import Path

RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.py"))


def load_recipe(name):
    """The module of `recipes/<name>.py`."""
    [path] = [path for path in RECIPES if path.stem == name]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module
