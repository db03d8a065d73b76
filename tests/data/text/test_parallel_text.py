import gzip
from collections import Counter

import pytest

import kseq.data.files.compressed_files
from kseq.data import DataError, ParallelText, TextReport
from kseq.data.files.text_files import LONGEST_LINE


def strings(dataset):
    return [tuple(pair) for pair in dataset.as_numpy_iterator()]


def test_two_files_and_one_table_are_the_same_pairs(write):
    files = ParallelText(
        write("train.de", b"ein Hund\nzwei\n"), write("train.en", b"a dog\ntwo")
    )
    table = ParallelText(write("train.tsv", b"ein Hund\ta dog\nzwei\ttwo\n"))

    for text in (files, table):
        assert strings(text.pairs()) == [
            (b"ein Hund", b"a dog"),
            (b"zwei", b"two"),
        ]
        assert text.check() == TextReport(pairs=2)
        assert list(text.source_lines()) == [b"ein Hund", b"zwei"]
        assert list(text.target_lines()) == [b"a dog", b"two"]


def test_unequal_line_counts_name_both_files_and_counts(write):
    text = ParallelText(write("a.de", b"1\n2\n3\n"), write("a.en", b"1\n2\n"))

    with pytest.raises(DataError, match=r"a\.de has 3, .*a\.en has 2"):
        text.check()


def test_a_truncated_gz_is_named(write):
    lines = b"".join(b"line %d\n" % number for number in range(10_000))
    whole = gzip.compress(lines)
    source = write("a.de.gz", whole)
    target = write("a.en.gz", whole[: len(whole) // 2])

    assert ParallelText(source, source).check().pairs == 10_000
    with pytest.raises(
        DataError, match=r"a\.en\.gz is not a complete \.gz file"
    ):
        ParallelText(source, target).check()
    with pytest.raises(DataError, match=r"b\.gz is not a complete \.gz file"):
        ParallelText(write("b.gz", b"no gzip\n")).check()


def test_gz_and_plain_files_have_the_same_pairs(write):
    lines = b"\xef\xbb\xbfone\r\ntwo\n"
    # Files that were appended to each other are a .gz file, too.
    parts = gzip.compress(lines[:7]) + gzip.compress(lines[7:])
    plain, packed = write("a.txt", lines), write("a.gz", parts)

    text = ParallelText(plain, packed)

    assert strings(text.pairs()) == [(b"one", b"one"), (b"two", b"two")]
    assert text.check() == TextReport(pairs=2)


def test_invalid_utf8_is_counted_and_logged_once(write, caplog):
    source = write("a.de", b"gut\nschl\xffcht\nschl\xfecht\n")
    target = write("a.en", b"good\nbad\nb\xc3d\n")

    report = ParallelText(source, target).check()

    assert report == TextReport(pairs=3, invalid=2)
    assert caplog.text.count("2 of 3 pairs are not valid UTF-8") == 1


def test_invalid_utf8_of_json_is_counted(write, caplog):
    lines = b'{"source": "gut", "target": "g\xffd"}\n{"source": "a"' + (
        b', "target": ["b", "c"]}'
    )
    text = ParallelText(write("a.jsonl", lines))
    assert text.check() == TextReport(pairs=3, invalid=1)
    assert "1 of 3 pairs are not valid UTF-8" in caplog.text
    counts = Counter()
    list(text.usable_blocks(counts, text.source))  # how a process prepares it
    assert counts["invalid"] == 1


def test_a_warning_is_one_line_whatever_the_name_of_the_file(write, caplog):
    ParallelText(write("a\n.de", b"a\xff"), write("b", b"b")).check()

    [message] = caplog.messages
    assert "a\\n.de" in message


def test_one_example_a_newline(write, tokenizer):
    lines = ["one", "t\u2028w\u0085o", "thr\x0b\x0c\x1cee", "f\x00our", "five"]
    lf = write("lf", "\n".join(lines).encode())
    crlf = write("crlf", b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    text = ParallelText(lf, crlf)

    assert text.check() == TextReport(pairs=5)
    assert strings(text.pairs()) == [(line.encode(),) * 2 for line in lines]
    assert (
        tokenizer.tokenize(list(text.source_lines())).to_list()[1:]
        == tokenizer.tokenize(list(text.target_lines())).to_list()[1:]
    )


def test_blank_lines_are_counted(write, caplog):
    source = write("a.de", b"eins\n\n  \nvier\n")
    target = write("a.en", b"one\ntwo\nthree\n\r\n")

    report = ParallelText(source, target).check()
    assert report == TextReport(4, blank=3)
    assert "3 of 4 pairs are left out" in report.problems("a")[0]
    assert caplog.text == ""  # to evaluate, all are used

    table = ParallelText(write("a.tsv", b"eins\tone\n\nzwei\t\n"))
    assert table.check() == TextReport(3, blank=2)
    assert strings(table.pairs()) == [(b"eins", b"one")]
    assert strings(table.all_pairs())[1:] == [(b"", b""), (b"zwei", b"")]


def test_a_very_long_line_is_counted(write):
    source = write("a.de", b"kurz\n" + b"lang " * 400_000 + b"\n")
    target = write("a.en", b"short\nlong\n")

    text = ParallelText(source, target)
    assert text.check() == TextReport(2, too_long=1)
    assert "1 with a line over 65536 bytes" in text.check().problems(text)[0]
    assert strings(text.pairs()) == [(b"kurz", b"short")]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'"Hund" dog', r"found 1 in '\"Hund\" dog'"),
        (b"a\tb\tc", r"found 3 in 'a\\tb\\tc'"),
    ],
)
def test_a_broken_table_is_named_by_file_and_line(write, line, found):
    path = write("a.tsv", b'"ein" Hund\ta "dog\n' + line + b"\n")

    with pytest.raises(DataError, match=rf"a\.tsv:2: expected .*; {found}"):
        ParallelText(path).check()


def test_quotes_are_text(write):
    path = write("a.tsv", b'"ein" Hund\ta "dog\n')

    assert strings(ParallelText(path).pairs()) == [(b'"ein" Hund', b'a "dog')]


def test_files_that_cannot_be_used_are_named(write, tmp_path):
    good, empty = write("good.tsv", b"a\tb\n"), write("empty", b"")
    messages = {
        tmp_path / "missing": "There is no file .*missing",
        tmp_path / "*.none": r"There is no file .*\*\.none",
        tmp_path: "is a directory",
        empty: "empty is empty",
        write("blank", b"\n \n"): "there is no pair to train on",
    }

    for path, message in messages.items():
        with pytest.raises(DataError, match=message):
            ParallelText(path).check()
    with pytest.raises(DataError, match="empty is empty"):
        ParallelText(good, empty).check()
    with pytest.raises(DataError, match="There is no file"):
        ParallelText(tmp_path / "missing").pairs()


def test_an_unreadable_file_is_named(write, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path = write("secret", b"a\tb\n")
    monkeypatch.setattr(
        kseq.data.files.compressed_files, "open", refuse, raising=False
    )

    with pytest.raises(DataError, match=r"Cannot read .*secret: Permission"):
        ParallelText(path).check()


def test_a_pattern_names_files_in_order(write, tmp_path):
    for name in ("2.de", "1.de", "10.de"):
        write(name, b"\xef\xbb\xbf" + name.encode())
    write("all.en", b"one\nten\ntwo\n")

    text = ParallelText(tmp_path / "*.de", tmp_path / "all.en")

    assert text.check() == TextReport(pairs=3)
    assert strings(text.pairs()) == [
        (b"1.de", b"one"),
        (b"10.de", b"ten"),
        (b"2.de", b"two"),
    ]


def test_evaluation_keeps_blank_sides(write):
    long = b"x" * (LONGEST_LINE + 1)
    text = ParallelText(
        write("a.de", b"ja\n\n\xe3\x80\x80\n" + long + b"\nein\rs\n"),
        write("a.en", b"yes\nno\nblank\nlong\n\n"),
    )
    blank = "\u3000".encode()
    found = [(b"ja", b"yes"), (b"", b"no"), (blank, b"blank"), (b"eins", b"")]
    pairs = text.all_pairs()
    for _ in range(2):  # it can be read again
        assert strings(pairs) == found
    assert strings(text.pairs()) == found[:1]
