"""Data sets of the library `datasets`, and folders of Parquet files.

`saved_dataset` is what `Dataset.save_to_disk` of datasets 5.2 has written.
"""

import json
import shutil
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from kseq.data import (
    DataError,
    ParallelText,
    prepare_pairs,
    read_corpus,
    read_dialogues,
    read_documents,
    read_tagged_sentences,
    read_texts,
)
from kseq.data.files import arrow_messages, arrow_sizes
from kseq.data.files.arrow_sizes import rows_together, small_parts
from kseq.data.files.fingerprints import fingerprints
from kseq.data.files.parquet_pages import pages
from kseq.data.files.records import read_records
from kseq.data.files.tables import kind_of
from kseq.data.text.pair_tokenizers import PairTokenizers

SAVED = Path(__file__).with_name("saved_dataset")
COLUMNS = ("translation.de", "translation.en")


@pytest.fixture
def saved(here):
    shutil.copytree(SAVED, "saved")
    return Path("saved")


def tables():
    """The tables of both files of the data set."""
    for path in sorted(SAVED.glob("*.arrow")):
        with pyarrow.OSFile(str(path)) as file:
            yield pyarrow.ipc.open_stream(file).read_all()


@pytest.fixture
def shards(here):
    Path("shards").mkdir()
    for number, table in enumerate(tables()):
        pyarrow.parquet.write_table(
            table, f"shards/train-{number:05}-of-00002.parquet"
        )
    return Path("shards")


@pytest.mark.parametrize("name", ["saved", "shards"])
def test_all_that_can_be_a_table(request, name):
    path = request.getfixturevalue(name)

    text = ParallelText(path, columns=COLUMNS)
    expected = [(b"Satz %d." % n, b"Sentence %d." % n) for n in range(6)]
    assert list(text.pairs().as_numpy_iterator()) == expected
    assert text.check().pairs == 6
    documents = read_documents(path)
    assert documents.labels == ["bad", "good"] * 3
    assert documents.texts == [f"A text {n}." for n in range(6)]
    sentences = read_tagged_sentences(path)
    assert sentences.texts[5] == "the w5"
    assert sentences.tags == [["DET", "NOUN"]] * 6
    assert len(read_dialogues(path).answers) == 12
    assert read_texts(path) == documents.texts


@pytest.mark.parametrize("name", ["saved", "shards"])
def test_folders_are_prepared(request, name):
    path = request.getfixturevalue(name)
    tokenizers = PairTokenizers(280)
    prepared = prepare_pairs(
        "out", [path], columns=COLUMNS, tokenizers=tokenizers
    )
    corpus = read_corpus([path], columns=COLUMNS, log=False)
    assert prepared.facts == corpus.facts


def test_labels_inside_of_lists_and_objects():
    [path, _] = sorted(SAVED.glob("*.arrow"))
    records = [record for _, record in read_records(str(path))]
    texts = [{"text": "a", "label": "yes"}]
    assert [record["answers"] for record in records] == [
        {"kind": kind, "texts": texts} for kind in ("short", "long", "short")
    ]
    # Columns that are not needed are known, but not read.
    [(line, record), *_] = read_records(str(path), ["label"])
    assert (record["label"], record["text"]) == ("bad", "")
    assert str(line).endswith("data-00000-of-00002.arrow:1")


def write_arrow(path, rows, features, opened=pyarrow.ipc.new_stream):
    table = pyarrow.Table.from_pylist(rows)
    about = json.dumps({"info": {"features": features}})
    table = table.replace_schema_metadata({"huggingface": about})
    with pyarrow.OSFile(path, "wb") as file, opened(file, table.schema) as out:
        out.write_table(table)
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_nulls_are_empty_cells(tmp_path, kind):
    """Also objects and items of lists, and what is inside of them."""
    pair, item = {"de": "x", "en": "y"}, {"a": {"b": "z"}, "c": ["w", None]}
    rows = [
        {"translation": pair, "target": ["t"], "items": [item]},
        {"translation": None, "target": [None, "t"], "items": [None, {}]},
        {"translation": {"de": "x"}, "target": None, "items": None},
    ]
    path = str(tmp_path / f"a.{kind}")
    if kind == "arrow":
        write_arrow(path, rows, {})
    else:
        table = pyarrow.Table.from_pylist(rows)
        pyarrow.parquet.write_table(table, path)
    none = {"de": "", "en": ""}
    empty = {"a": {"b": ""}, "c": ""}
    filled = item | {"c": ["w", ""]}
    assert [record for _, record in read_records(path)] == [
        {"translation": pair, "target": ["t"], "items": [filled]},
        {"translation": none, "target": ["", "t"], "items": [empty, empty]},
        {"translation": {"de": "x", "en": ""}, "target": "", "items": ""},
    ]
    found = ParallelText(path, columns=COLUMNS).check()
    assert (found.pairs, found.blank) == (3, 2)
    found = ParallelText(path, columns=("translation.de", "target")).check()
    assert (found.pairs, found.blank) == (4, 3)


def label(*names):
    return {"names": list(names), "_type": "ClassLabel"}


def test_lists_as_older_versions_describe_them(tmp_path):
    features = {
        "tags": [label("A", "B")],
        "old": {"_type": "Sequence", "feature": {"x": label("C", "D")}},
    }
    rows = [{"tags": [0, 1, -1], "old": {"x": [1, 1]}}]
    path = write_arrow(str(tmp_path / "a.arrow"), rows, features)
    [(_, record)] = read_records(path)
    assert record == {"tags": ["A", "B", ""], "old": {"x": ["D", "D"]}}


@pytest.mark.parametrize("about", ["[", "[1]", '{"info": "ClassLabel"}'])
def test_numbers_without_names(tmp_path, about):
    path = str(tmp_path / "a.arrow")
    table = pyarrow.Table.from_pylist([{"label": 3, "text": "a"}])
    table = table.replace_schema_metadata(
        {"huggingface": about + '"ClassLabel"'}
    )
    with (
        pyarrow.OSFile(path, "wb") as file,
        pyarrow.ipc.new_file(file, table.schema) as out,
    ):
        out.write_table(table)
    assert read_documents(path).labels == ["3"]


def test_wrong_labels(tmp_path):
    path = str(tmp_path / "a.arrow")
    for number, message in (
        (2, r"a\.arrow:1: expected the number of one of 2 labels; found 2"),
        (-2, r"a\.arrow:1: expected the number of one of 2 labels; found -2"),
        (-1, r"a\.arrow:1: the label is blank"),
    ):
        rows = [{"label": number, "text": "a"}]
        write_arrow(path, rows, {"label": label("A", "B")})
        with pytest.raises(DataError, match=message):
            read_documents(path)


def test_broken_files(tmp_path, saved):
    path = saved / "data-00000-of-00002.arrow"
    whole = path.read_bytes()
    message = r"data-00000-of-00002\.arrow cannot be read as Arrow: "
    for content in (
        *(b"", b"no data", b"ARROW1", b"ARROW1\0\0" + whole, whole[:-8]),
        *(whole[:size] for size in range(1, len(whole) - 1, 97)),
        whole.replace(b"\x12\0\0\0\x1b\0", b"\xff\xff\xff\x7f\x1b\0"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            list(read_documents(saved))


@pytest.mark.parametrize(
    "kind",
    [pyarrow.timestamp("s"), pyarrow.duration("s"), pyarrow.date32()],
)
def test_dates_that_python_does_not_have(tmp_path, kind):
    numbers = pyarrow.array([2**30 if kind == pyarrow.date32() else 2**60])
    whole = "int32" if kind == pyarrow.date32() else "int64"
    path = tmp_path / "a.arrow"
    table = pyarrow.table({"source": numbers.cast(whole).cast(kind)})
    with pyarrow.ipc.new_stream(path, table.schema) as file:
        file.write_table(table)
    with pytest.raises(DataError, match=r"a\.arrow cannot be read as Arrow"):
        [*read_records(str(path))]


def test_folders_that_are_no_table(saved, shards):
    def refuse(path, message):
        with pytest.raises(DataError, match=message):
            ParallelText(path, columns=COLUMNS).check()

    (shards / "train-00001-of-00002.parquet").rename("rest")
    refuse(shards, "shards: expected 2 Parquet files; found 1. Is a download")
    Path("rest").rename(shards / "test-00000-of-00001.parquet")
    refuse(shards, r"several splits: test, train\. Give .* 'shards/train\*")
    for name in ("train", "test"):
        shutil.copytree(SAVED, f"splits/{name}")
    Path("splits/dataset_dict.json").write_text('{"splits": ["train"]}')
    refuse("splits", r"splits has several splits: test, train\. Give the fol")
    Path("empty").mkdir()
    refuse("empty", "empty is a directory; give the path of a file")

    state = json.loads((saved / "state.json").read_text())
    indices = {"_indices_data_files": [{"filename": "indices.arrow"}]}
    for changed, message in (
        (state | indices, "saved: its rows are chosen by a file of indices"),
        ({"_data_files": []}, r"saved is empty: it has no rows\."),
        ({"_data_files": [{"filename": "../a"}]}, "json is broken: expected"),
        ({"_data_files": {}}, r"json is broken: .* '_data_files'\. Received"),
        ({"_data_files": [{"filename": "b"}]}, "Cannot read saved/b: No such"),
        ([], "state.json is broken"),
    ):
        (saved / "state.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=message):
            ParallelText(saved, columns=COLUMNS).check()


def test_fingerprints_are_those_of_the_files(saved):
    assert kind_of(saved) == "arrow"
    before = fingerprints(saved)
    assert len(before) == 2
    with open(saved / "data-00001-of-00002.arrow", "r+b") as file:
        file.write(b"\0")
    assert fingerprints(saved)[0] == before[0]
    assert fingerprints(saved)[1] != before[1]


def test_arrow_without_its_library(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match="Arrow needs the extra parquet of"):
        read_texts(saved)


ENDS = pyarrow.array([0, 10**8], pyarrow.int32())
EXPANDS = {  # from a few bytes
    "it has 100000000 rows in": pyarrow.nulls(10**8),
    "it has 100000000 rows": pyarrow.RunEndEncodedArray.from_arrays(
        ENDS[1:], ["x"]
    ),
    "a row has more than 64 MiB": pyarrow.ListArray.from_arrays(
        ENDS, pyarrow.nulls(10**8)
    ),
    "a row has more": pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.nulls(10**8), 10**8
    ),
    "columns of list_view<item: string> are not supported": (
        pyarrow.array([["x"]], pyarrow.list_view(pyarrow.string()))
    ),
}


@pytest.mark.parametrize("message", EXPANDS)
def test_a_small_file_that_would_fill_the_memory(tmp_path, message):
    batch = pyarrow.record_batch([EXPANDS[message]], names=["a"])
    path = tmp_path / "a.arrow"
    with pyarrow.ipc.new_stream(path, batch.schema) as file:
        file.write_batch(batch)
    assert path.stat().st_size < 2000
    with pytest.raises(DataError, match=f"cannot be read as Arrow: {message}"):
        next(read_records(str(path)))


def write_compressed(path, opened, array):
    table = pyarrow.table({"a": array})
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with opened(path, table.schema, options=options) as file:
        file.write_table(table, max_chunksize=2)
    return path


@pytest.mark.parametrize("is_dictionary", [False, True])
@pytest.mark.parametrize(
    "opened", [pyarrow.ipc.new_stream, pyarrow.ipc.new_file]
)
def test_compressed_batches(monkeypatch, tmp_path, opened, is_dictionary):
    array = pyarrow.array(["x" * 2**20, "y", None, "z", "y"])
    if is_dictionary:
        array = array.dictionary_encode()
    path = str(write_compressed(tmp_path / "a.arrow", opened, array))
    rows = [row["a"] for _, row in read_records(path)]
    assert rows == ["x" * 2**20, "y", "", "z", "y"]
    monkeypatch.setattr(arrow_messages, "_LARGEST_BODY", 2**20)
    message = r"read as Arrow: \d+ bytes expand to 10\d{5}$"
    with pytest.raises(DataError, match=message):
        next(read_records(path))


def test_a_damaged_compressed_batch(tmp_path):
    path = tmp_path / "a.arrow"
    write_compressed(path, pyarrow.ipc.new_stream, ["x" * 99, "y", None])
    whole = path.read_bytes()
    for place in range(100, len(whole) - 8, 5):
        damaged = bytearray(whole)
        damaged[place] ^= 255
        path.write_bytes(damaged)
        try:
            assert len([*read_records(str(path))]) == 3
        except DataError as error:
            assert "a.arrow cannot be read as Arrow: " in str(error)
    path.write_bytes(whole + whole)
    with pytest.raises(DataError, match="ends before the end of the file"):
        [*read_records(str(path))]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pyarrow.nulls(10**8), "it has 100000000 rows in .* bytes"),
        (
            pyarrow.ListArray.from_arrays(
                [0, 17_000_000], pyarrow.nulls(17_000_000)
            ),
            "has 17000000 values in 1 rows; expected at most",
        ),
        (pyarrow.array(["x" * 2**21] * 9), r"a expands from \d+ to 2097156 "),
    ],
    ids=["rows", "values", "bytes"],
)
def test_a_small_parquet_that_would_fill_the_memory(
    monkeypatch, tmp_path, array, message
):
    monkeypatch.setattr(arrow_sizes, "_LARGEST_BLOCK", 2**20)
    path = tmp_path / "a.parquet"
    table = pyarrow.table([array], names=["a"])
    pyarrow.parquet.write_table(
        table, path, compression="zstd", dictionary_pagesize_limit=2**30
    )
    assert path.stat().st_size < 300_000
    with pytest.raises(DataError, match=message):
        next(read_records(str(path)))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_one_large_value_of_many_rows_of_a_parquet(tmp_path, version):
    path = str(tmp_path / "a.parquet")
    values, rows = ["x" * 2**23, *"yz"], [0, 1, 2, None] * 64
    column = pyarrow.DictionaryArray.from_arrays(rows, values)
    table = pyarrow.table([column, rows, [[1, 2]] * 256], names=["a", "b", "c"])
    pyarrow.parquet.write_table(
        table,
        path,
        compression="zstd",
        data_page_version=version,
        dictionary_pagesize_limit=2**30,
    )
    with pyarrow.parquet.ParquetFile(path) as file:
        for names, expected in (("abc", 31), ("bc", 256), ("", 256)):
            found = rows_together(path, file.metadata, names, most=256)
            assert found == expected
        columns = map(file.metadata.row_group(0).column, range(3))
        with open(path, "rb") as opened:
            counts = [
                sum(page.values for page in pages(opened, column))
                for column in columns
            ]
    assert counts == [256, 256, 512]
    assert len([*read_records(path, "b")]) == 256


def test_damaged_pages_of_a_parquet(tmp_path):
    """Each byte of the first headers, changed."""
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"a": ["x", "y"] * 20})
    pyarrow.parquet.write_table(table, path)
    whole = path.read_bytes()
    for place in range(4, 60):
        for byte in (0, 12, 8, 255):
            damaged = whole[:place] + bytes([byte]) + whole[place + 1 :]
            path.write_bytes(damaged)
            try:
                assert len([*read_records(str(path))]) == 40
            except DataError as error:
                assert "a.parquet cannot be read as Parquet: " in str(error)


def test_rows_are_read_together_where_they_fit_into_memory(tmp_path):
    """Two values of a megabyte, of which there are 300 megabytes in rows."""
    numbers = pyarrow.array([0, None, 1] * 100, pyarrow.int8())
    values = {
        "dictionary": pyarrow.DictionaryArray.from_arrays(
            numbers, ["x" * 2**20, "y"]
        ),
        "runs": pyarrow.RunEndEncodedArray.from_arrays(
            pyarrow.array([100, 300], pyarrow.int16()), ["y", "x" * 2**20]
        ),
        "views": pyarrow.array(["x", None, "y"] * 100, pyarrow.string_view()),
        "maps": pyarrow.array(
            [[("x", 1)], None, []] * 100,
            pyarrow.map_(pyarrow.string(), pyarrow.int8()),
        ),
        "null": pyarrow.nulls(300),
    }
    batch = pyarrow.record_batch(list(values.values()), names=list(values))
    assert max(part.num_rows for part in small_parts(batch)) == 75
    path = str(tmp_path / "a.arrow")
    with pyarrow.ipc.new_file(path, batch.schema) as file:
        file.write_batch(batch)
    rows = [row for _, row in read_records(path)]
    assert [len(row["dictionary"]) for row in rows[:3]] == [2**20, 0, 1]
    assert [len(row["runs"]) for row in rows[98:102]] == [1, 1, 2**20, 2**20]
    assert [row["views"] for row in rows[:3]] == ["x", "", "y"]
    assert [row["maps"] for row in rows[:3]] == [[("x", 1)], "", []]
