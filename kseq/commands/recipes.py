"""kseq recipes: the pages that train a model."""

import ast
import difflib
import os
from pathlib import Path

from kseq.files.atomic_write import atomic_write, unique_path
from kseq.files.built_in import recipe_pages
from kseq.user_error import DiskError, UserError


def run(options):
    """Lists the recipes, or copies one into the current folder."""
    if options.action == "copy":
        _copy(options.name)
    else:
        list_recipes()


def list_recipes():
    """Prints the names of the recipes and what they do."""
    for name, path in recipe_pages().items():
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
        print(f"{name:<24} {docstring.splitlines()[0]}")


def find_recipe(name):
    """The path of a recipe.

    Args:
        name: str, its name or a part of it that no other name has.

    Returns:
        A `pathlib.Path`.

    Raises:
        UserError: if there is none, or more than one; it suggests a name.
    """
    recipes = recipe_pages()
    name = name.removesuffix(".py").lower()
    if name in recipes:
        return recipes[name]
    found = [known for known in recipes if name and name in known]
    if len(found) == 1:
        return recipes[found[0]]
    words = {word: known for known in recipes for word in known.split("_")}
    close = difflib.get_close_matches(name, [*recipes, *words], n=1)
    meant = found or [words.get(word, word) for word in close]
    hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
    raise UserError(
        f"there is no recipe {name!r}.{hint} The recipes are "
        f"{', '.join(recipes)}."
    )


def _copy(name):
    recipe = find_recipe(name)
    copy = Path(recipe.name)
    if os.path.lexists(copy):
        raise UserError(f"{copy} exists already.")
    try:
        atomic_write(copy, recipe.read_bytes(), unique_path(copy))
    except OSError as error:
        raise DiskError(
            f"{copy} could not be written: {error.strerror}."
        ) from error
    print(f"Wrote {copy}. Run it with: kseq train ./{copy}")
