"""kseq train: runs a recipe, as `python recipes/NAME.py` does."""

import runpy
import sys
from pathlib import Path

from kseq.commands.recipes import find_recipe, list_recipes
from kseq.user_error import UserError


def run(options):
    """Runs a recipe with its options; without a name, lists the recipes."""
    if options.recipe is None:
        list_recipes()
        return
    run_page(options, "kseq train")


def run_page(options, command, instead=None):
    """Runs the page of a recipe.

    Args:
        options: of the command line, with `recipe`, `words` and `debug`.
        command: str, which begins messages, with the name of the recipe.
        instead: callable that gets the config instead of the page's `main`,
            or None; `kseq.command_line.run_recipe` calls it.
    """
    is_path = "/" in options.recipe or options.recipe.endswith(".py")
    if is_path:
        path = Path(options.recipe)
        _check_python(path)
        sys.path.insert(0, str(path.parent))  # as `python FILE` does
    else:
        path = find_recipe(options.recipe)
    name = options.recipe if is_path else path.stem
    if options.debug:
        options.words.append("--debug")
    sys.argv[1:] = options.words
    page = {"__command__": f"{command} {name}", "__instead__": instead}
    runpy.run_path(str(path), init_globals=page, run_name="__main__")


def _check_python(path):
    if not path.is_file():
        raise UserError(
            f"there is no file {path}. `kseq recipes copy NAME` writes one."
        )
    try:
        compile(path.read_bytes(), path, "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0)
        message = getattr(error, "msg", error)
        raise UserError(f"{path}:{line} is not Python: {message}") from None
