"""The command line of a recipe."""

import logging
import os
import sys

import tyro

from kseq.user_error import UserError


def run_recipe(main, config, without_files):
    """Reads the config from the command line and runs the recipe with it.

    An error that the user can mend is one message and an exit code; with
    KSEQ_DEBUG=1 in the environment it keeps its traceback. The code is 2
    where command, files or configuration are wrong, and 4 where the disk is
    full.

    Args:
        main: callable, config -> None.
        config: a dataclass instance; every field becomes an option. These are
            its defaults with files of the user, that is, with `--train`.
        without_files: the same, its defaults for the built-in corpus.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    has_files = any(word.split("=")[0] == "--train" for word in sys.argv)
    config = tyro.cli(
        type(config),
        default=config if has_files else without_files,
        description=sys.modules["__main__"].__doc__,
    )
    try:
        main(config)
    except UserError as error:
        if os.environ.get("KSEQ_DEBUG"):
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # outside `fit`, where Checkpoints catches it
        sys.exit(130)
