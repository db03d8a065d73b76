"""What several commands are told of media: `--features`, `--resample`."""

from kseq.command_line.argument_types import existing_file


def add_features(command, help="features of what the input lines name"):
    """Adds the file with the features of pictures or recordings."""
    command.add_argument(
        "--features", type=existing_file, metavar="FILE.npz", help=help
    )


def add_resample(command):
    """Adds whether recordings get the sample rate of the model."""
    command.add_argument(
        "--resample",
        action="store_true",
        help="resample recordings to the sample rate of the model",
    )
