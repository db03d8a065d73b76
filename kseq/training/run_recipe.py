"""The command line of a recipe."""

import logging
import os
import sys

import tyro

from kseq.user_error import UserError


def run_recipe(main, config_class):
    """Reads the config from the command line and runs the recipe with it.

    An error that the user can mend is one message and exit code 2; with
    KSEQ_DEBUG=1 in the environment it keeps its traceback.

    Args:
        main: callable, config -> None.
        config_class: a dataclass; every field becomes an option.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    config = tyro.cli(config_class)
    try:
        main(config)
    except UserError as error:
        if os.environ.get("KSEQ_DEBUG"):
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
