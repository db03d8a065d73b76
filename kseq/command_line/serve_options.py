"""Options of `kseq serve`."""

from kseq.command_line.argument_types import reader
from kseq.option_types import PositiveFloat, PositiveInt


def add_serve(command):
    """Adds what is served, and how."""
    command.add_argument(
        "paths",
        nargs="*",
        type=reader(str),
        metavar="PATH",
        help="of a model: saved_models/NAME with its versions, a folder of "
        "such folders, or a run",
    )
    command.add_argument(
        "--model",
        action="append",
        default=[],
        type=reader(str),
        metavar="NAME=PATH",
        help="a model under another name",
    )
    command.add_argument(
        "--label",
        action="append",
        default=[],
        type=reader(str),
        metavar="[NAME:]LABEL=VERSION",
        help="a name for a version, which stays served",
    )
    command.add_argument(
        "--host",
        type=reader(str),
        default="127.0.0.1",
        metavar="ADDRESS",
        help="default: 127.0.0.1, this machine alone",
    )
    command.add_argument(
        "--port",
        type=int,
        default=8501,
        metavar="N",
        help="default: 8501; 0 for any that is free",
    )
    command.add_argument(
        "--grpc-port",
        type=int,
        metavar="N",
        help="of gRPC, TensorFlow Serving's is 8500; default: no gRPC",
    )
    command.add_argument(
        "--allow-host",
        action="append",
        default=[],
        type=reader(str),
        metavar="NAME",
        help="a host name that requests may give besides localhost; '*' for "
        "any",
    )
    for flag, kind, default, letter, help in (
        ("--body-limit", PositiveInt, 64, "MIB", "MiB of a request"),
        ("--timeout", PositiveFloat, 30.0, "S", "seconds of a request"),
        ("--queue-size", PositiveInt, 256, "N", "requests that may wait"),
    ):
        command.add_argument(
            flag,
            type=reader(kind),
            default=default,
            metavar=letter,
            help=f"{help}; default: {default:g}",
        )
    command.add_argument(
        "--access-log",
        action="store_true",
        help="a line of JSON for each request, without its text",
    )
    command.add_argument(
        "--metrics",
        action="store_true",
        help="answers Prometheus at /monitoring/prometheus/metrics",
    )
