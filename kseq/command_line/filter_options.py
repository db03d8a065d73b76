"""Options of filters of pairs."""

from kseq.command_line.argument_types import reader
from kseq.command_line.option_types import PositiveFloat, PositiveInt


def add_filters(command, verb):
    """Adds the filters of `kseq.data.LineFilters`.

    Args:
        command: an argparse parser.
        verb: what happens to pairs that are probably no translations.
    """
    command.add_argument(
        "--filter",
        action="store_true",
        help=f"{verb} pairs that are probably no translations",
    )
    command.add_argument(
        "--scripts",
        type=reader(str),
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="with --filter: scripts of both sides, such as Latin Cyrillic",
    )
    command.add_argument(
        "--max-ratio",
        type=reader(PositiveFloat),
        metavar="N",
        help="with --filter: most times that a side is longer; default: 9",
    )
    command.add_argument(
        "--max-characters",
        type=reader(PositiveInt),
        metavar="N",
        help="with --filter: of a side; default: 1000",
    )
