"""Options of `kseq serve`."""

from kseq.command_line.allow_op_option import add_allow_op
from kseq.command_line.argument_types import reader
from kseq.command_line.option_types import (
    Port,
    PositiveFloat,
    PositiveInt,
    SmallInt,
)


def add_serve(command):
    """Adds the options for what is served, and how."""
    command.add_argument(
        "paths",
        nargs="*",
        type=reader(str),
        metavar="PATH",
        help="a model: saved_models/NAME with its versions, a folder of such "
        "folders, or a run",
    )
    command.add_argument(
        "--model",
        action="append",
        default=[],
        type=reader(str),
        metavar="NAME=PATH",
        help="serve a model under a different name",
    )
    command.add_argument(
        "--label",
        action="append",
        default=[],
        type=reader(str),
        metavar="[NAME:]LABEL=VERSION",
        help="label a version, which stays loaded",
    )
    command.add_argument(
        "--host",
        type=reader(str),
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; default: 127.0.0.1 (this machine only)",
    )
    command.add_argument(
        "--port",
        type=reader(Port),
        default=8501,
        metavar="N",
        help="HTTP port; default: 8501; 0 for any free port",
    )
    command.add_argument(
        "--grpc-port",
        type=reader(Port),
        metavar="N",
        help="gRPC port (TensorFlow Serving uses 8500); default: no gRPC",
    )
    command.add_argument(
        "--workers",
        type=reader(SmallInt),
        default=1,
        metavar="N",
        help="processes that answer at the same ports; each loads the models; "
        "default: 1",
    )
    command.add_argument(
        "--allow-host",
        action="append",
        default=[],
        type=reader(str),
        metavar="NAME",
        help="accept requests for this host name besides localhost; '*' for "
        "any",
    )
    command.add_argument(
        "--body-limit",
        type=reader(PositiveInt),
        metavar="MIB",
        help="maximum size of a request; default: 4, and 64 for models of "
        "pictures, recordings or features",
    )
    for flag, kind, default, letter, help in (
        ("--timeout", PositiveFloat, 30.0, "S", "timeout of a request"),
        ("--queue-size", PositiveInt, 256, "N", "maximum waiting requests"),
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
        help="log each request as a line of JSON, without its text",
    )
    command.add_argument(
        "--metrics",
        action="store_true",
        help="expose Prometheus metrics at /monitoring/prometheus/metrics",
    )
    add_allow_op(command)
