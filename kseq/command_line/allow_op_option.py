"""The option `--allow-op` of the commands that open exports."""

import argparse
import re

_NAME = re.compile(r"[A-Za-z][\w>/-]*", re.ASCII)


def add_allow_op(command):
    """Adds the option that allows an export further operations."""
    command.add_argument(
        "--allow-op",
        action="append",
        default=[],
        type=_op_name,
        metavar="NAME",
        help="for an export that you trust: allow an operation that exports "
        "of kseq do not use, for example in a constraint or layer of your own; "
        "it can read and write files and run programs",
    )


def _op_name(text):
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"expected the name of an operation, such as StringUpper. "
            f"Received: {text!r}"
        )
    return text
