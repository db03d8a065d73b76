"""Options of `kseq check`."""

from kseq.command_line.argument_types import reader
from kseq.command_line.features_option import add_features
from kseq.command_line.option_types import PositiveFloat, PositiveInt


def add_check(command):
    """Adds the files, and options for their contents."""
    command.add_argument("files", type=reader(str), nargs="+", metavar="FILE")
    command.add_argument(
        "--validation",
        type=reader(str),
        nargs="+",
        default=(),
        metavar="FILE",
        help="default: held out of FILES",
    )
    command.add_argument(
        "--columns",
        type=reader(str),
        nargs="+",
        default=(),
        metavar="COLUMN",
        help="columns of source and target, of label and text, of words and "
        "tags, or of text",
    )
    for flag, what in (
        ("--documents", "labelled documents"),
        ("--tags", "sentences with a tag for each word"),
        ("--dialogues", "dialogues"),
        ("--text", "running text of a language model"),
    ):
        help = f"{what}, not pairs of sentences"
        command.add_argument(flag, action="store_true", help=help)
    add_features(
        command, "captions or transcripts of what is in this .npz file"
    )
    command.add_argument(
        "--audio",
        type=reader(str),
        metavar="FOLDER",
        help="transcripts of the recordings of a folder",
    )
    command.add_argument(
        "--resample",
        type=reader(PositiveInt),
        metavar="N",
        help="resample recordings to N samples per second",
    )
    command.add_argument(
        "--filter",
        action="store_true",
        help="count pairs that are probably no translations",
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
