"""The command line of a recipe."""

import errno
import logging
import os
import sys

import tensorflow as tf
import tyro

from kseq.devices import device_strategy
from kseq.runs.run_directory import batch_fields
from kseq.user_error import UserError

_ERRORS = (UserError, OSError, MemoryError, tf.errors.ResourceExhaustedError)
_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)


def run_recipe(main, config, without_files):
    """Reads the config from the command line and runs the recipe with it.

    An error that the user can fix is one message and an exit code; with
    KSEQ_DEBUG=1 in the environment it keeps its traceback. The code is 2
    where command, files or configuration are wrong, 3 where the training
    diverged, 4 where memory or disk are full, and 5 where another machine of
    the cluster was lost.

    Args:
        main: callable, config -> None.
        config: a dataclass instance; every field becomes an option. These are
            its defaults with files of the user, that is, with `--train`.
        without_files: the same, its defaults for the built-in corpus.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("kseq").setLevel(logging.INFO)
    has_files = any(word.split("=")[0] == "--train" for word in sys.argv)
    config = tyro.cli(
        type(config),
        default=config if has_files else without_files,
        description=sys.modules["__main__"].__doc__,
    )
    try:
        device_strategy()  # before TensorFlow does anything else
        main(config)
    except _ERRORS as error:
        code = _exit_code(error)
        if code is None or os.environ.get("KSEQ_DEBUG"):
            raise
        print(f"error: {_message(error, config)}", file=sys.stderr)
        sys.exit(code)
    except _LOST:
        if os.environ.get("KSEQ_DEBUG"):
            raise
        print(
            "error: Another machine of the cluster was lost. Start all of "
            "them again with the same commands, and training resumes from "
            "its last checkpoint.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(5)  # or TensorFlow would wait for the lost one
    except KeyboardInterrupt:  # outside `fit`, where Checkpoints catches it
        sys.exit(130)


def _exit_code(error):
    """None for an error that the user cannot fix."""
    if isinstance(error, UserError):
        return error.exit_code
    if isinstance(error, OSError):
        return 4 if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    return 4


def _message(error, config):
    if isinstance(error, MemoryError | tf.errors.ResourceExhaustedError):
        hints = [
            f"--{name.replace('_', '-')} is {getattr(config, name)}"
            for name in batch_fields(config)
        ]
        text = str(error) or "Out of memory."
        return f"{text.splitlines()[0]} ({', '.join(hints)})"
    return str(error)
