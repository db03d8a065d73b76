"""Lines that name or describe inputs, read one by one."""

import sys

from kseq.data import DataError
from kseq.terminal import escaped_line
from kseq.user_error import UserError


def numbered_lines(read, blank=b"", notes=()):
    """A function that reads an input for each line.

    Args:
        read: function of a line, bytes, without white space around it.
        blank: the input of a blank line.
        notes: list, to which `read` appends notes about a line; they are
            printed on standard error.

    Returns:
        A function of a list of lines, which gives a list of inputs. It raises
        UserError with the number of a line that `read` refuses with DataError.
    """
    number = 0

    def read_lines(lines):
        nonlocal number
        inputs = []
        for line in map(bytes.strip, lines):
            number += 1
            try:
                inputs.append(read(line) if line else blank)
            except DataError as error:
                raise UserError(f"line {number}: {error}") from None
            while notes:
                note = escaped_line(notes.pop())
                print(f"line {number}: {note}", file=sys.stderr)
        return inputs

    return read_lines
