"""Tar archives of WebDataset."""

import io
import itertools
import json
import random
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from kseq.data import DataError
from kseq.data.files.named_texts import CAPTIONS, TRANSCRIPTS, read_named_texts
from kseq.data.files.tar_members import is_tar, tar_rows
from tests.data.tar import tar

pytestmark = pytest.mark.usefixtures("here")

FILES = {
    "a.wav": b"A" * 700,
    "a.txt": "\ufeffgo  home\n".encode(),
    "more/b.FLAC": b"B",
    "more/b.json": json.dumps({"text": "yes"}).encode(),
    "c.1.mp3": b"C",
    "c.1.cls": b"7",
}
NAMED = {"a.wav": ["go home"], "more/b.FLAC": ["yes"], "c.1.mp3": ["7"]}


def write(files, path="a.tar", **options):
    Path(path).write_bytes(tar(files, **options))
    return path


def texts_of(path, known=TRANSCRIPTS):
    """{member: texts}, and what is left out."""
    found, members, counts = read_named_texts(path, known=known)
    return {members[name].name: found[name] for name in found}, counts


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, 1, 2])
def test_members_of_the_same_stem_are_an_example(form):
    write(FILES, form=form)
    assert texts_of("a.tar") == (NAMED, {})
    found = read_named_texts("a.tar", known=TRANSCRIPTS)[1]
    by_name = {member.name: member for member in found.values()}
    assert by_name["a.wav"].read() == FILES["a.wav"]
    assert str(by_name["a.wav"]) == "a.tar: a.wav"
    assert by_name["c.1.mp3"].size == 1


def test_the_order_of_members_is_free():
    names = [*FILES]
    for _ in range(3):
        random.shuffle(names)
        write({name: FILES[name] for name in names})
        assert texts_of("a.tar") == (NAMED, {})


def test_texts_of_pictures():
    """Of two texts the .txt counts, and an array has several."""
    described = {"caption": ["A dog.", "Dogs."], "width": 3}
    files = {
        **{"a.jpg": b"", "a.json": json.dumps(described).encode()},
        **{"b.png": b"", "b.json": b'{"caption": "none"}', "b.txt": b"A cat."},
        **{"c.JPEG": b"", "c.json": b'{"width": 3}', "c.CLS": b"cat"},
    }
    found, counts = texts_of(write(files), CAPTIONS)
    expected = {"a.jpg": ["A dog.", "Dogs."], "b.png": ["A cat."]}
    assert found == expected | {"c.JPEG": ["cat"]}
    assert not counts


def test_what_is_left_out_is_counted():
    files = {
        **{"a.wav": b"", "b.txt": b"no", "c.wav": b"", "c.txt": b" \n"},
        **{"d.wav": b"", "d.txt": b"x" * 70_000, "e.wav": b"", "e.json": b"{}"},
        **{"f.wav": b"", "f.txt": b"yes", "README": b"", "._f.wav": b"?"},
    }
    found, counts = texts_of(write(files))
    assert found == {"f.wav": ["yes"]}
    assert counts == Counter(
        blank=1, too_long=1, without_text=2, without_media=1
    )


def test_texts_that_are_not_utf_8_are_counted():
    files = {
        **{"a.wav": b"", "a.txt": b"gr\xfcn", "b.wav": b"", "b.txt": b"no"},
        **{"c.wav": b"", "c.json": b'{"text": "gr\xfcn"}'},
    }
    found, counts = texts_of(write(files))
    assert found["a.wav"] == found["c.wav"] == ["gr\ufffdn"]
    assert counts == Counter(invalid=2)


def test_a_label_that_is_a_number_in_json():
    files = {"a.wav": b"", "a.json": b'{"text": 7}'}
    files |= {"b.wav": b"", "b.json": b'{"text": [7.0, "eight"]}'}
    assert texts_of(write(files))[0] == {
        "a.wav": ["7"],
        "b.wav": ["7", "eight"],
    }


def test_names_differ_between_archives_and_not_between_places(here):
    """Archives number their members alike; a copy is the same archive."""
    write({"0.wav": b"A", "0.txt": b"yes"})
    write({"0.wav": b"B", "0.txt": b"yes"}, "b.tar")
    names = [*read_named_texts("*.tar", known=TRANSCRIPTS)[0]]
    assert len(names) == 2
    (here / "more").mkdir()
    (here / "b.tar").rename("more/c.tar")
    [name] = read_named_texts("more/c.tar", known=TRANSCRIPTS)[0]
    assert name == names[1]
    (here / "d.tar").write_bytes(Path("a.tar").read_bytes())
    with pytest.raises(DataError, match=r"^d\.tar is a copy of a\.tar"):
        read_named_texts("*.tar", known=TRANSCRIPTS)


def test_links_devices_and_sparse_members_are_ignored(here):
    (here / "secret.wav").write_bytes(b"secret")
    links = {
        "a.wav": (tarfile.SYMTYPE, "secret.wav"),
        "b.wav": (tarfile.LNKTYPE, "/etc/passwd"),
        "c.wav": (tarfile.CHRTYPE, ""),
        "d.wav": (tarfile.FIFOTYPE, ""),
        "e.wav": (tarfile.GNUTYPE_SPARSE, ""),
        "f.wav": (tarfile.DIRTYPE, ""),
    }
    texts = {f"{stem}.txt": b"x" for stem in "abcdef"}
    write({**links, **texts, "../../g.wav": b"G", "../../g.txt": b"go"})
    found, counts = texts_of("a.tar")
    assert found == {"../../g.wav": ["go"]}
    assert counts == {"without_media": 6}
    assert {path.name for path in here.iterdir()} == {"a.tar", "secret.wav"}


def test_names_in_any_encoding():
    with tarfile.open(
        "a.tar", "w", encoding="latin-1", format=tarfile.USTAR_FORMAT
    ) as file:
        for name, text in (("ä.wav", b"A"), ("ä.txt", b"yes")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            file.addfile(info, io.BytesIO(text))
    found, _ = texts_of("a.tar")
    assert found == {"\udce4.wav": ["yes"]}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("a.wav", b""), ("a.wav", b"")], "a.tar: a.wav and a.wav are in"),
        ([("a.wav", b""), ("a.FLAC", b"")], "expected one recording for"),
        ([("a.txt", b""), ("a.TXT", b"")], "expected one txt for"),
        ([("a.wav", b""), ("a.json", b"[1]")], "a.json: expected a JSON obj"),
        ([("a.wav", b""), ("a.json", b"[" * 9**5)], "expected a JSON object"),
        ([("a.wav", b""), ("a.json", b'{"text": {}}')], "a string at 'text'"),
        ([("a.wav", b""), ("a.txt", "go".encode("utf-16"))], "a.txt is UTF-16"),
        ([("a.jpg", b""), ("a.txt", b"A dog.")], "contains no transcript"),
        ([], "contains no transcript"),
    ],
)
def test_a_wrong_archive_is_one_message(files, message):
    with pytest.raises(DataError, match=message):
        texts_of(write(files))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: b"a.wav\tgo\n" * 99,
        lambda content: b"\x1f\x8b" + content,
        lambda content: content[:700],
        lambda content: content[:1100],
        lambda content: content[:1536],
        lambda content: content[:2000],
        lambda content: content[:1536] + b"?" * 512 + content[2048:],
        # A size that is negative, and one that the file does not have.
        lambda content: size_of_first(content, b"\xff" * 12),
        lambda content: size_of_first(content, b"\x80\x7f" + b"\xff" * 10),
        lambda content: size_of_first(content, b"77777777777\0"),
        # A header of such a size.
        lambda content: size_of_first(content, b"77777777777\0", b"x"),
        lambda content: size_of_first(content, b"\xff" * 12, b"L"),
    ],
)
def test_a_broken_archive_is_one_message(change):
    Path("a.tar").write_bytes(change(tar(FILES, form=tarfile.USTAR_FORMAT)))
    with pytest.raises(DataError, match=r"^a.tar is not an uncompressed tar"):
        texts_of("a.tar")


def size_of_first(content, size, kind=b"0"):
    header = bytearray(content[:512])
    header[124:136], header[156:157] = size, kind
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content[512:]


@pytest.mark.parametrize(
    "path", ["a.tar.gz", "a.TGZ", "b/*.tar.zst", "a.tar.bz2", "a.txz"]
)
def test_compressed_archives_are_refused(path):
    with pytest.raises(DataError, match="Decompress it to"):
        is_tar(path)
    assert is_tar("a.TAR")
    assert not is_tar("a.tar.tsv")


def test_any_bytes_are_rows_or_one_message():
    """Of any archive that is changed at random."""
    draw = random.Random()
    whole = [tar(FILES, form=form) for form in range(3)]
    for content, _ in itertools.product(whole, range(20)):
        changed = bytearray(content)
        for _ in range(draw.choice((1, 3, 30))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        Path("a.tar").write_bytes(changed[: draw.choice((None, 2000))])
        try:
            list(tar_rows("a.tar", TRANSCRIPTS))
        except DataError as error:
            assert "\n" not in str(error)
