"""Options of commands that find answers."""

from kseq.command_line.argument_types import reader
from kseq.command_line.option_types import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Share,
)


def add_search(command):
    """Adds the options for the weights of a run and for the search."""
    add_weights(command)
    command.add_argument(
        "--beam-size",
        type=reader(PositiveInt),
        metavar="K",
        help="beam size, for a run; default: that of its config, or 4",
    )
    command.add_argument(
        "--patience",
        type=reader(PositiveFloat),
        metavar="P",
        help="for a run: stop after P * K finished answers; default: when "
        "no better answer is possible, which is slower",
    )
    add_length_penalty(command)
    command.add_argument(
        "--coverage-penalty",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="for a run with attention: weight of source positions without "
        "attention; default: that of its config, or 0",
    )
    command.add_argument(
        "--groups",
        type=reader(PositiveInt),
        dest="num_groups",
        metavar="G",
        help="for a run: G groups of the beam that differ; default: 1",
    )
    command.add_argument(
        "--diversity",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="with --groups: how much they differ; default: 0.5",
    )
    command.add_argument(
        "--ctc-weight",
        type=reader(Share),
        metavar="W",
        help="for a run with CTC: weight of its scores, 0 to 1",
    )
    for flag, help in (
        ("--greedy", "for a run: the most likely token at each step"),
        (
            "--sample",
            "sample tokens at random; for a run, or an export of a model of "
            "dialogues or of text",
        ),
    ):
        # None, not False, if it is not given.
        command.add_argument(flag, action="store_const", const=True, help=help)
    for flag, kind, help in (
        ("--temperature", NonNegativeFloat, "logits are divided by it"),
        ("--top-k", NonNegativeInt, "from the k most likely tokens; 0: all"),
        ("--top-p", NonNegativeFloat, "from the smallest set of probability p"),
        ("--seed", NonNegativeInt, "the same seed draws the same answers"),
    ):
        help = f"with --sample: {help}"
        command.add_argument(flag, type=reader(kind), metavar="X", help=help)


def add_weights(command):
    """Adds the option for the weights of a run."""
    command.add_argument(
        "--weights",
        choices=("average", "best", "last"),
        help="for a run; default: the first of these that it has",
    )


def add_length_penalty(command):
    """Adds the length penalty of a beam."""
    command.add_argument(
        "--length-penalty",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="for a run; default: that of its config, or 1.0",
    )
