"""Options of commands that find answers."""

from kseq.command_line.argument_types import reader
from kseq.command_line.option_types import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Share,
    option,
)
from kseq.user_error import UserError

_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
# Of `kseq chat`, which samples unless another search is chosen.
CHAT_SAMPLING = {"temperature": 0.7, "top_p": 0.9}
OF_BEAM = (
    *("beam_size", "patience", "coverage_penalty", "num_groups", "diversity"),
)
_FIELDS = (
    *("greedy", "sample", "length_penalty", "ctc_weight"),
    *(*_OF_SAMPLING, *OF_BEAM),
)


def add_search(command, chats=False):
    """Adds the options for the weights of a run and for the search.

    Args:
        command: parser.
        chats: bool, whether it is `kseq chat`, which samples by default.
    """
    add_weights(command)
    command.add_argument(
        "--beam-size",
        type=reader(PositiveInt),
        metavar="K",
        help="for a run: beam size; default: that of its config, or 4",
    )
    command.add_argument(
        "--patience",
        type=reader(PositiveFloat),
        metavar="P",
        help="for a run: stop a beam search after P * K finished answers; "
        "default: when no better answer is possible, which is slower",
    )
    add_length_penalty(command)
    command.add_argument(
        "--coverage-penalty",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="for a run with attention: weight of the penalty for source "
        "positions that got no attention; default: that of its config, or 0",
    )
    command.add_argument(
        "--groups",
        type=reader(PositiveInt),
        dest="num_groups",
        metavar="G",
        help="for a run: diverse beam search with G groups; default: 1",
    )
    command.add_argument(
        "--diversity",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="with --groups: penalty for tokens that other groups have chosen; "
        "default: 0.5",
    )
    command.add_argument(
        "--ctc-weight",
        type=reader(Share),
        metavar="W",
        help="for a run with CTC: weight of the CTC scores, 0 to 1",
    )
    for flag, help in (
        ("--greedy", "for a run: choose the most likely token at each step"),
        (
            "--sample",
            "sample tokens at random; for a run, or an export of a dialogue or "
            "language model",
        ),
    ):
        # None, not False, if it is not given.
        command.add_argument(flag, action="store_const", const=True, help=help)
    defaults = {"temperature": 1, "top_k": "0, all", "top_p": 1, "seed": 0}
    if chats:
        defaults |= CHAT_SAMPLING | {"seed": "a random one"}
    for name, kind, help in (
        ("temperature", NonNegativeFloat, "logits are divided by it"),
        (
            "top_k",
            NonNegativeInt,
            "sample from the k most likely tokens, including ties",
        ),
        (
            "top_p",
            NonNegativeFloat,
            "sample from the smallest set of tokens with probability p",
        ),
        ("seed", NonNegativeInt, "the same seed draws the same answers"),
    ):
        when = "for sampling" if chats else "with --sample"
        command.add_argument(
            option(name),
            type=reader(kind),
            metavar="X",
            help=f"{when}: {help}; default: {defaults[name]}",
        )


def add_weights(command):
    """Adds the option for the weights of a run."""
    command.add_argument(
        "--weights",
        choices=("average", "best", "last"),
        help="weights of a run; default: the first of these that exist",
    )


def add_length_penalty(command):
    """Adds the length penalty of a beam."""
    command.add_argument(
        "--length-penalty",
        type=reader(NonNegativeFloat),
        metavar="X",
        help="for a run: length penalty; default: that of its config, or 1.0",
    )


def check_search(options):
    """UserError for options of a search that contradict each other."""
    given = given_search(options)
    kinds = [name for name in ("greedy", "sample") if name in given]
    if len(kinds) > 1:
        raise UserError("--greedy and --sample are mutually exclusive.")
    for name in given:
        if name in _OF_SAMPLING and "sample" not in given:
            raise UserError(f"{option_of(name)} needs --sample.")
        if name in OF_BEAM and kinds:
            raise UserError(f"{option_of(name)} needs a beam search.")
    if "diversity" in given and given.get("num_groups", 1) == 1:
        raise UserError("--diversity needs --groups of two or more.")


def chooses_search(options):
    """Whether the options choose a search other than sampling."""
    names = "greedy", "length_penalty", *OF_BEAM
    return not given_search(options).keys().isdisjoint(names)


def given_search(options):
    """The options of a search that are given, dict of field -> value."""
    return {
        name: value
        for name, value in vars(options).items()
        if name in _FIELDS and value is not None and value is not False
    }


def option_of(name):
    """The option of a field, such as --groups of num_groups."""
    return option(name.removeprefix("num_"))
