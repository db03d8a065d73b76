import hashlib
import json
import os
import uuid
from pathlib import Path

import pytest
from tensorflow.io import gfile

from kseq.data import DataError
from kseq.data.files.url_files import is_url, local_copies
from kseq.user_error import DiskError


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The URL of a folder in TensorFlow's file system in memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return f"ram://{uuid.uuid4().hex}"


@pytest.fixture
def copied(monkeypatch):
    """The URLs that were copied."""
    found, copy = [], gfile.copy

    def record(source, target):
        found.append(source.rsplit("/", 1)[1])
        copy(source, target)

    monkeypatch.setattr(gfile, "copy", record)
    return found


def put(url, content=b"a rose\n"):
    gfile.makedirs(url.rsplit("/", 1)[0])
    if gfile.exists(url):  # it would be appended to
        gfile.remove(url)
    with gfile.GFile(url, "wb") as file:
        file.write(content)


def put_prepared(url, files):
    identities = {
        name: {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in files.items()
    }
    record = json.dumps({"format": 1, "kind": "pairs", "files": identities})
    for name, content in files.items():
        put(f"{url}/{name}", content)
    put(f"{url}/prepared.json", record.encode())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gs://bucket/a.tsv", True),
        ("S3://bucket", True),
        ("a+b.c-1://x", True),
        ("a.tsv", False),
        ("/data/a://b", False),
        ("a:/b", False),
        ("://b", False),
        ("1a://b", False),
        (Path("a.tsv"), False),
        ("", False),
    ],
)
def test_urls(path, expected):
    assert is_url(path) == expected


def test_local_paths_are_not_changed():
    assert local_copies(None) is None
    assert local_copies("a.tsv") == "a.tsv"
    assert local_copies(("a.tsv", "b [1]/*.gz")) == ("a.tsv", "b [1]/*.gz")


def test_a_file_is_copied_once(store, copied):
    put(f"{store}/a.tsv")
    [path] = local_copies([f"{store}/a.tsv"])
    assert path.endswith("/a.tsv")
    assert Path(path).read_bytes() == b"a rose\n"
    assert local_copies(f"{store}/a.tsv") == path
    assert copied == ["a.tsv"]
    assert os.listdir(Path(path).parent) == ["a.tsv"]  # no other part

    put(f"{store}/a.tsv", b"another rose\n")
    assert local_copies(f"{store}/a.tsv") == path
    assert Path(path).read_bytes() == b"another rose\n"


def test_a_pattern_names_several_files(store, copied):
    for name in ("a.1.tsv", "a.2.tsv", "b.tsv"):
        put(f"{store}/{name}", name.encode())
    pattern = Path(local_copies(f"{store}/a.*.tsv"))
    assert pattern.name == "a.*.tsv"
    assert sorted(os.listdir(pattern.parent)) == ["a.1.tsv", "a.2.tsv"]
    gfile.remove(f"{store}/a.1.tsv")
    assert local_copies(f"{store}/a.*.tsv") == str(pattern)
    assert os.listdir(pattern.parent) == ["a.2.tsv"]


def test_prepared_data_are_copied_once_and_resumed(store, copied, monkeypatch):
    url = f"{store}/out"
    put_prepared(url, {"a.values": b"1234", "b.values": b"56", "c.x": b""})
    copy = gfile.copy

    def fail(source, target):
        if source.endswith("b.values"):
            Path(target).write_bytes(b"5")
            raise KeyboardInterrupt
        copy(source, target)

    with monkeypatch.context() as context:
        context.setattr(gfile, "copy", fail)
        with pytest.raises(KeyboardInterrupt):
            local_copies(url)
    for _ in range(2):
        folder = Path(local_copies(url + "/"))
    assert folder.name == "out"
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    record = found.pop("prepared.json")
    assert found == {"a.values": b"1234", "b.values": b"56", "c.x": b""}
    # The record twice, for the first time it was not kept.
    assert copied == [
        *("prepared.json", "a.values"),
        *("prepared.json", "b.values", "c.x"),
    ]

    # Other data have another folder, and that of runs stays.
    put_prepared(url, {"a.values": b"78"})
    other = Path(local_copies(url))
    assert (other / "a.values").read_bytes() == b"78"
    assert (folder / "prepared.json").read_bytes() == record


def test_prepared_data_that_have_changed(store):
    put_prepared(store + "/out", {"a.values": b"1234"})
    put(store + "/out/a.values", b"1243")
    for _ in range(2):
        with pytest.raises(DataError, match=r"content of a\.values has"):
            local_copies(store + "/out")


@pytest.mark.parametrize(
    "record",
    [
        *(b"{}", b'{"files": 1}', b"[", b"\xff"),
        b'{"files": {"../a": {}}}',
        b'{"files": {"..": {}}}',
        b'{"files": {"prepared.json": {}}}',
    ],
)
def test_a_broken_record(store, record):
    put(store + "/out/prepared.json", record)
    with pytest.raises(DataError, match=r"out/prepared\.json is broken"):
        local_copies(store + "/out")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{store}/no.tsv", "There is no file 'ram://"),
        ("{store}/no.*", "There is no file 'ram://"),
        ("{store}/folder", "is a folder without prepared data"),
        ("{store}/f*/a.tsv", "a pattern must be in the last part"),
        ("ram://", "ram:"),
        ("nosuch://bucket/a.tsv", "has no file system for nosuch://"),
        ("nosuch://", "has no file system for nosuch://"),
    ],
)
def test_wrong_urls(store, path, message):
    put(f"{store}/folder/a.tsv")
    with pytest.raises(DataError, match=message):
        local_copies(path.format(store=store))


def test_the_cache_cannot_be_written(store, tmp_path, monkeypatch):
    put(f"{store}/a.tsv")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match="Set XDG_CACHE_HOME to a folder"):
        local_copies(f"{store}/a.tsv")


def test_a_full_disk(store, monkeypatch):
    import tensorflow as tf

    def fail(source, target):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left")

    put(f"{store}/a.tsv")
    monkeypatch.setattr(gfile, "copy", fail)
    with pytest.raises(DiskError, match="cannot be copied: No space left"):
        local_copies(f"{store}/a.tsv")
