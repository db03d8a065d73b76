"""The option `--features` of several commands."""

from kseq.command_line.argument_types import existing_file


def add_features(command, help="features of what the input lines name"):
    """Adds the file with the features of pictures or recordings."""
    command.add_argument(
        "--features", type=existing_file, metavar="FILE.npz", help=help
    )
