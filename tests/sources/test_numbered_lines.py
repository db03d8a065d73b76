import pytest

from kseq.data import DataError
from kseq.sources.numbered_lines import numbered_lines
from kseq.user_error import UserError


def test_lines_are_counted_over_all_calls(capsys):
    notes = []

    def read(line):
        if line == b"bad":
            raise DataError("expected good.")
        notes.append(f"about {line.decode()}")
        return line.upper()

    read_lines = numbered_lines(read, blank="nothing", notes=notes)
    assert read_lines([b" a ", b"", b"b\t"]) == [b"A", "nothing", b"B"]
    assert capsys.readouterr().err == "line 1: about a\nline 3: about b\n"
    with pytest.raises(UserError, match=r"^line 5: expected good\.$"):
        read_lines([b"c", b"bad"])
