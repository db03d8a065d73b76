"""Options of `kseq check`."""

from kseq.command_line.argument_types import reader
from kseq.command_line.features_option import add_features
from kseq.command_line.filter_options import add_filters
from kseq.command_line.option_types import PositiveInt


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
        help="columns of source, target, and perhaps alignment, of label and "
        "text, of words and tags, or of text",
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
    add_filters(command, "count")
