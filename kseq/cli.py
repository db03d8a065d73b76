"""The command line.

Each command is a module of `kseq.commands` with a function `run(options)`.
None is imported before the arguments are known to be good: help and errors
do not wait for TensorFlow.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

import kseq
from kseq.model_path import model_path, run_path
from kseq.start_keras import start_keras
from kseq.user_error import UserError


def main(arguments=None):
    """Runs a command and gives back its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command != "recipes":
            start_keras()
        command = importlib.import_module(f"kseq.commands.{options.command}")
        command.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has seen enough; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (UserError, OSError) as error:
        if options.debug:
            raise
        print(f"kseq {options.command}: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 2)
    return 0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong, and nothing else."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def _parser():
    parser = _Parser(
        prog="kseq",
        description="Sequence-to-sequence and attention models in Keras: use "
        "what a recipe has trained. PATH is a run directory (runs/NAME) or an "
        "export (saved_models/NAME or one of its versions).",
    )
    parser.add_argument("--version", action="version", version=kseq.__version__)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True
    )
    _add_predict(commands)
    _add_score(commands)
    _add_evaluate(commands)
    _add_explain(commands)
    _add_export(commands)
    _add_average(commands)
    _add_inspect(commands)
    _add_recipes(commands)
    return parser


def _add_predict(commands):
    command = _command(commands, "predict", "one answer for each line of input")
    _add_path(command, model_path)
    _add_search(command)
    _add_batch_size(command)
    command.add_argument(
        "--prefix",
        type=_existing_file,
        metavar="FILE",
        help="what each answer begins with, a line for each line of input",
    )
    command.add_argument(
        "--n-best",
        type=_at_least(1),
        default=1,
        metavar="N",
        help="N answers a line, separated by tabs",
    )
    for flag, help in (
        ("--scores", "a score before each answer"),
        ("--json", "one JSON object a line"),
        ("--attention", "attention weights in the JSON"),
    ):
        command.add_argument(flag, action="store_true", help=help)


def _add_score(commands):
    command = _command(commands, "score", "the score of each given answer")
    _add_path(command, model_path)
    _add_two_files(command, "TARGET")
    _add_weights(command)
    _add_length_penalty(command)
    _add_batch_size(command)


def _add_evaluate(commands):
    command = _command(
        commands, "evaluate", "BLEU and chrF, or accuracy and F1, on a file"
    )
    _add_path(command, model_path)
    _add_two_files(command, "REFERENCE", nargs="?")
    command.add_argument(
        "--columns",
        nargs=2,
        default=("label", "text"),
        metavar=("LABEL", "TEXT"),
        help="names of both in the SOURCE of a classifier",
    )
    _add_search(command)
    _add_batch_size(command)


def _add_explain(commands):
    command = _command(
        commands, "explain", "a page of what decided on each line of input"
    )
    _add_path(command, model_path)
    _add_weights(command)
    _add_batch_size(command)


def _add_export(commands):
    command = _command(commands, "export", "write a SavedModel to be served")
    _add_path(command, run_path)
    _add_search(command)
    command.add_argument(
        "--to",
        type=Path,
        metavar="DIRECTORY",
        help="gets one more version; default: saved_models/NAME",
    )


def _add_average(commands):
    command = _command(commands, "average", "average the last checkpoints")
    _add_path(command, run_path)
    command.add_argument(
        "--last", type=_at_least(1), default=5, metavar="N", help="default: 5"
    )


def _add_inspect(commands):
    command = _command(commands, "inspect", "say what a run or an export is")
    _add_path(command, model_path)


def _add_recipes(commands):
    command = _command(commands, "recipes", "list the recipes, or copy one")
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    copy = actions.add_parser("copy", help="write NAME.py into this folder")
    copy.add_argument("name", metavar="NAME")


def _command(commands, name, help):
    command = commands.add_parser(name, help=help, description=help)
    command.add_argument(
        "--debug", action="store_true", help="errors with their traceback"
    )
    return command


def _add_path(command, type):
    command.add_argument("path", type=_checked(type), metavar="PATH")


def _checked(function):
    """An argument's type of a function that raises UserError."""

    def check(text):
        try:
            return function(text)
        except UserError as error:
            raise argparse.ArgumentTypeError(error) from None

    return check


@_checked
def _existing_file(text):
    if not Path(text).is_file():
        raise UserError(f"there is no file {text}")
    return Path(text)


def _add_two_files(command, second, nargs=None):
    command.add_argument("source", type=_existing_file, metavar="SOURCE")
    command.add_argument(
        second.lower(), type=_existing_file, metavar=second, nargs=nargs
    )


def _add_search(command):
    _add_weights(command)
    command.add_argument(
        "--beam-size",
        type=_at_least(1),
        metavar="K",
        help="of a run; default: its config's, or 4",
    )
    command.add_argument(
        "--patience",
        type=_at_least(0.01),
        metavar="P",
        help="of a run: a beam of K ends after P * K answers; default: when "
        "no better one can follow, which takes longer",
    )
    _add_length_penalty(command)
    for flag, help in (
        ("--greedy", "the likeliest token at every step, of a run"),
        ("--sample", "tokens drawn at random, of a run"),
    ):
        # None, and not False, where it is not given.
        command.add_argument(flag, action="store_const", const=True, help=help)
    for flag, least, help in (
        ("--temperature", 0.0, "of a sample: logits are divided by it"),
        ("--top-k", 0, "of a sample: from the k likeliest tokens; 0: all"),
        ("--top-p", 0.0, "of a sample: from the likeliest, p in sum"),
        ("--seed", 0, "of a sample: the same seed draws the same answers"),
    ):
        command.add_argument(
            flag, type=_at_least(least), metavar="X", help=help
        )


def _add_weights(command):
    command.add_argument(
        "--weights",
        choices=("average", "best", "last"),
        help="of a run; default: the first of these that it has",
    )


def _add_length_penalty(command):
    command.add_argument(
        "--length-penalty",
        type=_at_least(0.0),
        metavar="X",
        help="of a run; default: its config's, or 1.0",
    )


def _add_batch_size(command):
    command.add_argument(
        "--batch-size",
        type=_at_least(1),
        default=32,
        metavar="B",
        help="lines decoded at once; default: 32",
    )


def _at_least(least):
    """The type of an argument: a number of the type of `least`, or above it."""

    def number(text):
        value = type(least)(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        return value

    return number


if __name__ == "__main__":
    sys.exit(main())
