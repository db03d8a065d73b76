"""kseq recipes: the pages that train a model."""

import ast
import os
from pathlib import Path

import kseq
from kseq.disk_error import DiskError
from kseq.user_error import UserError
from kseq.whole_files import write_whole


def run(options):
    """Lists the recipes, or copies one into the current folder."""
    if options.action == "copy":
        _copy(options.name)
        return
    for name, path in _recipes().items():
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
        print(f"{name:<24} {docstring.splitlines()[0]}")


def _recipes():
    """{name: path}, of the wheel or, in a checkout, of the folder beside."""
    package = Path(kseq.__file__).parent
    folders = (package / "recipes", package.parent / "recipes")
    folder = next(folder for folder in folders if folder.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.py"))}


def _copy(name):
    recipes = _recipes()
    name = name.removesuffix(".py")
    if name not in recipes:
        raise UserError(f"there is no recipe {name}: {', '.join(recipes)}")
    copy = Path(f"{name}.py")
    if os.path.lexists(copy):
        raise UserError(f"{copy} is there already.")
    try:
        write_whole(copy, recipes[name].read_bytes())
    except OSError as error:
        raise DiskError(
            f"{copy} could not be written: {error.strerror}."
        ) from error
    print(f"Wrote {copy}. Run it with: python {copy}")
