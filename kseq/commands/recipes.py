"""kseq recipes: the pages that train a model."""

import ast
from pathlib import Path

import kseq
from kseq.user_error import UserError


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
    if copy.exists():
        raise UserError(f"{copy} is there already.")
    copy.write_bytes(recipes[name].read_bytes())
    print(f"Wrote {copy}. Run it with: python {copy}")
