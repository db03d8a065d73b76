"""Options of commands that find answers."""

from kseq.command_line.argument_types import reader
from kseq.option_types import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Share,
)


def add_search(command):
    """Adds the weights of a run, and how answers are found."""
    add_weights(command)
    command.add_argument(
        "--beam-size",
        type=reader(PositiveInt),
        metavar="K",
        help="of a run; default: its config's, or 4",
    )
    command.add_argument(
        "--patience",
        type=reader(PositiveFloat),
        metavar="P",
        help="of a run: a beam of K ends after P * K answers; default: when "
        "no better one can follow, which takes longer",
    )
    add_length_penalty(command)
    command.add_argument(
        "--ctc-weight",
        type=reader(Share),
        metavar="W",
        help="of a run with CTC: its share of the scores, 0 to 1",
    )
    for flag, help in (
        ("--greedy", "the likeliest token at each step, of a run"),
        ("--sample", "tokens drawn at random, of a run"),
    ):
        # None, and not False, where it is not given.
        command.add_argument(flag, action="store_const", const=True, help=help)
    for flag, kind, help in (
        ("--temperature", NonNegativeFloat, "logits are divided by it"),
        ("--top-k", NonNegativeInt, "from the k likeliest tokens; 0: all"),
        ("--top-p", NonNegativeFloat, "from the likeliest whose sum reaches p"),
        ("--seed", NonNegativeInt, "the same seed draws the same answers"),
    ):
        help = f"with --sample: {help}"
        command.add_argument(flag, type=reader(kind), metavar="X", help=help)


def add_weights(command):
    """Adds which weights of a run are used."""
    command.add_argument(
        "--weights",
        choices=("average", "best", "last"),
        help="of a run; default: the first of these that it has",
    )


def add_length_penalty(command):
    """Adds the length penalty of a beam."""
    command.add_argument(
        "--length-penalty",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="of a run; default: its config's, or 1.0",
    )
