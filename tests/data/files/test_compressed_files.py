"""Compressed text is read as the same text that is not compressed."""

import bz2
import gzip
import lzma
import sys

import numpy as np
import pytest
import zstandard

from kseq.data import DataError, ParallelText, read_corpus, read_documents
from kseq.data.files.compressed_files import compression_of, uncompressed_name
from kseq.data.files.fingerprints import fingerprints
from kseq.data.files.tables import kind_of
from kseq.data.files.text_files import read_lines
from tests.slow import others_slow

pytestmark = pytest.mark.usefixtures("here")

COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
ENDS = list(COMPRESS)


def write(name, content):
    with open(name, "wb") as file:
        file.write(content)
    return name


@pytest.mark.parametrize("end", ENDS)
def test_lines_of_members_that_were_appended(end):
    compress = COMPRESS[end]
    # A member can end inside a line.
    content = compress(b"\xef\xbb\xbfa\nb") + compress(b"b\n") + compress(b"c")
    path = write(f"a{end}", content)

    assert [line.text for line in read_lines(path)] == [b"a", b"bb", b"c"]


def test_large_zst_in_frames_that_can_be_skipped():
    text = b"".join(b"line %d\n" % number for number in range(300_000))
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(text)
    path = write("a.zst", skipped + frame + skipped + frame)

    lines = [line.text for line in read_lines(path)]
    assert b"\n".join([*lines, b""]) == text + text


@pytest.mark.parametrize("end", ENDS)
def test_broken_files(end):
    random = np.random.default_rng(1).bytes(50_000)
    whole = COMPRESS[end](random.replace(b"\n", b"") + b"\n")
    message = rf"a\{end} is not a complete \{end} file\."
    for content in (
        *(whole[: len(whole) // 2], whole[:-1], whole[:5], b"no archive\n"),
        whole + whole[: len(whole) // 2],
    ):
        with pytest.raises(DataError, match=message):
            list(read_lines(write(f"a{end}", content)))
    with pytest.raises(DataError, match=rf"a\{end} is empty\."):
        list(read_lines(write(f"a{end}", COMPRESS[end](b""))))


# Lines of all of them are read above.
@pytest.mark.parametrize("end", others_slow(ENDS, [".gz"]))
def test_pairs_and_documents(end):
    compress = COMPRESS[end]
    sides = [
        b"".join(b"%d %b\n" % (n, w) for n in range(40)) for w in (b"a", b"b")
    ]
    for name, side in zip(("de", "en"), sides, strict=True):
        write(f"a.{name}", side)
        write(f"b.{name}{end}", compress(side))
    text = ParallelText(f"b.de{end}", f"b.en{end}")

    plain = ParallelText("a.de", "a.en")
    assert text.check() == plain.check()
    for read in (ParallelText.pairs, ParallelText.all_pairs):
        found = list(read(text).as_numpy_iterator())
        assert found == list(read(plain).as_numpy_iterator())
        assert len(found) == 40
    corpus = read_corpus([f"b.de{end}", f"b.en{end}"], log=False)
    assert list(corpus.lines()) == list(read_corpus(["a.de", "a.en"]).lines())

    table = b"source\ttarget\nA.\tB.\n\tC.\nD.\tE.\n"
    write(f"a.TSV{end.upper()}", compress(table))
    pairs = ParallelText(f"a.TSV{end.upper()}").pairs().as_numpy_iterator()
    assert list(pairs) == [(b"A.", b"B."), (b"D.", b"E.")]

    write(f"a.csv{end}", compress(b"label,text\n1,a\n2,b\n"))
    assert read_documents(f"a.csv{end}").texts == ["a", "b"]


def test_names_and_fingerprints():
    assert uncompressed_name("a.CSV.XZ") == "a.CSV"
    assert uncompressed_name("xz") == "xz"
    assert compression_of("a.CSV.XZ") == ".xz"
    assert kind_of("a.jsonl.zst") == "json"
    write("a.tsv.gz", b"a")
    assert [found["kind"] for found in fingerprints("a.tsv.gz")] == ["tsv.gz"]


def test_zst_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    write("a.tsv.zst", zstandard.compress(b"a\tb\n"))

    with pytest.raises(
        DataError, match=r"a\.tsv\.zst: \.zst needs the extra zstd of kseq: pip"
    ):
        ParallelText("a.tsv.zst").check()
