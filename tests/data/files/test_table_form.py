"""Tables as other programs write them, and what is said about them."""

import csv
import io
import json
import sys
import time

import pytest

from kseq.data import (
    DataError,
    ParallelText,
    read_corpus,
    read_document_corpus,
    read_documents,
    read_tagged_sentences,
    read_texts,
)
from kseq.data.files import table_form, tables
from kseq.data.files.named_texts import TRANSCRIPTS, read_named_texts
from kseq.data.files.table_form import form_of
from kseq.data.files.tables import rows_of_cells
from tests.data.text.test_pair_table import pairs_of

ROWS = [
    ("source", "target"),
    ("plain", "einfach"),
    ('he said "no"', "er sagte: nein"),
    ("two\nlines", "a\ttab"),
    ("5", "fünf"),
]


def written(rows, **options):
    file = io.StringIO()
    csv.writer(file, **options).writerows(rows)
    return file.getvalue().encode()


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_tsv_of_a_program_is_read_without_its_quotes(write, quoting, end):
    options = {"delimiter": "\t", "lineterminator": end, "quoting": quoting}
    path = write("a.tsv", written(ROWS, **options))
    assert pairs_of(path) == [
        tuple(
            text.replace("\n", " ").replace("\t", " ").encode() for text in row
        )
        for row in ROWS[1:]
    ]
    [note] = ParallelText(path).notes()
    assert note.startswith(f"{path}: cells are in quotes")
    assert note in read_corpus([path], log=False).describe()


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line", ["sep={}", '"SEP={}"', "sep={0}{0}{0}"])
def test_a_line_for_spreadsheets_is_no_row(write, sign, line):
    rows = written(ROWS[1:2], delimiter=sign)
    path = write("a.csv", f"\ufeff{line.format(sign)}\r\n".encode() + rows)
    assert pairs_of(path) == [(b"plain", b"einfach")]
    assert len(ParallelText(path).notes()) == (sign != ",")
    broken = write("b.csv", f"sep={sign}\na{sign}b\nc\n".encode())
    with pytest.raises(DataError, match=r"b\.csv:3: expected 2 columns"):
        ParallelText(broken).check()
    with pytest.raises(DataError, match="no pair to train on"):
        ParallelText(write("c.csv", f"sep={sign}".encode())).check()


def test_cells_that_are_all_in_quotes(write):
    rows = written(
        [(1, "so good"), (2, "bad"), (3, "fair")],
        delimiter="\t",
        quoting=csv.QUOTE_NONNUMERIC,
    )
    documents = read_documents(write("a.tsv", rows))
    assert documents.texts == ["so good", "bad", "fair"]


@pytest.mark.parametrize(
    "rows",
    [
        b'"ein" Hund\ta "dog\n',
        b'"Ja."\t"Yes."\nNein.\tNo.\nGut.\tGood.\n',  # quotations
        b'"Er kam.\tHe came.\nEr ging."\tHe left.\n',  # one over two lines
        b'a\tb\n"so ""so"""\tc\n5" pipe\td\n',  # one that is not quoted
        b'a\tb\n"so ""so" so"\tc\n',
        b'"a\tb\n' * 3,
        b'""\t"b"\n""\t""\n',
    ],
)
def test_quotes_of_a_text_stay(write, rows):
    path = write("a.tsv", rows)
    table = ParallelText(path)
    assert [*table.source_lines()] == [
        line.split(b"\t")[0] for line in rows.splitlines()
    ]
    assert table.notes() == []


def test_a_quote_at_the_end_of_a_long_table_counts(write):
    """And a table without quotes is looked at quickly."""
    many = b"".join(b"source %d\ttarget\n" % i for i in range(200_000))
    start = time.process_time()
    assert not form_of(str(write("a.tsv", many)), "tsv").has_quotes
    assert time.process_time() - start < 10
    proof = b'"so ""so"""\ttarget\n'
    assert form_of(str(write("b.tsv", many + proof)), "tsv").has_quotes


@pytest.mark.parametrize(
    ("delimiter", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_other_delimiters_of_a_csv(write, delimiter, name):
    rows = [("label", "text"), ("pos", "good, very"), ("neg", 'a "b"; c|d\te')]
    content = b"\xef\xbb\xbf" + written(rows, delimiter=delimiter)
    path = write("a.csv", content)
    documents = read_documents(path)
    assert list(zip(documents.labels, documents.texts, strict=True)) == rows[1:]
    described = read_document_corpus(path, path, log=False).describe()
    assert (
        f"{path}: columns are separated by {name}, not by commas." in described
    )


@pytest.mark.parametrize(
    "rows",
    [
        b"label,text\npos,a; b\nneg,c; d\n",
        b"label,text\npos,a; b\nneg\n",  # a broken row
        b"text\na;b\nc;d\n",
    ],
)
def test_commas_are_the_delimiter_of_a_csv(write, rows):
    form = form_of(str(write("a.csv", rows)), "csv")
    assert (form.delimiter, form.note) == (",", "")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_row_that_would_fill_the_memory(write, monkeypatch, name):
    """A compressed file of a megabyte may have one of a gigabyte."""
    monkeypatch.setattr(table_form, "_LARGEST_START", 30)
    monkeypatch.setattr(tables, "_LARGEST_ROW", 200)
    between = "," if name == "a.csv" else "\t"
    row, between = f"a{between}b\n".encode(), between.encode()
    path = write(name, row * 40 + between * 200 + b"\n")
    assert len([*rows_of_cells(path)]) == 41
    path = write(name, row * 40 + between * 201 + b"\n")
    with pytest.raises(DataError, match=":41: expected a row of at most 64"):
        [*rows_of_cells(path)]


def test_a_name_that_two_columns_have(write):
    path = write("a.csv", b"label,text,text\npos,a,b\n")
    message = r"a\.csv:1: expected one column 'text'; found 2 of this name"
    with pytest.raises(DataError, match=message):
        read_documents(path)
    with pytest.raises(DataError, match=message):
        read_texts(path)
    assert read_documents(path, ("1", "3")).texts == ["text", "b"]


def test_lines_that_end_in_carriage_returns(write):
    path = write("a.csv", b"source,target\ra,b\rc,d\r")
    with pytest.raises(DataError, match=r"a\.csv: .*returns alone.*tr '"):
        ParallelText(path).check()
    assert pairs_of(write("b.tsv", b"a\tb\r\n")) == [(b"a", b"b")]


def test_one_number_is_one_label(write):
    """However it is written; a string is as it is."""
    labels = [4, 4.0, 4.5, True, "4.0", 1e300]
    lines = [json.dumps({"stars": label, "text": "a"}) for label in labels]
    path = write("a.jsonl", "\n".join(lines).encode())
    found = read_documents(path, ("stars", "text")).labels
    assert found == ["4", "4", "4.5", "true", "4.0", "1e+300"]
    path = write("b.jsonl", b'{"stars": %s, "text": "a"}' % (b"9" * 400))
    with pytest.raises(DataError, match="at most 100 characters"):
        read_documents(path, ("stars", "text"))


def test_keys_inside_of_objects(write):
    record = {"translation": {"de": "Los.", "en": "Go."}, "translation.en": "!"}
    path = write("a.jsonl", json.dumps(record).encode())
    with pytest.raises(DataError, match=r"'translation\.de', 'translation\.en"):
        ParallelText(path).check()
    columns = ("translation.de", "translation.en")
    assert pairs_of(path, columns) == [(b"Los.", b"!")]
    assert read_texts(path, "translation.de") == ["Los."]
    texts, *_ = read_named_texts(path, columns, known=TRANSCRIPTS)
    assert texts == {"Los.": ["!"]}
    with pytest.raises(DataError, match=r"the keys 'translation\.fr'"):
        ParallelText(path, columns=("translation.fr", "x.y")).check()


RECORDS = [{"source": 'a "], [', "target": ["b", "\ud800c"]}] + [
    {"source": f"s{i}", "target": f"t{i}", "more": [{"x": [1, {}]}]}
    for i in range(3)
]


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_json_array_is_read_as_its_objects(write, indent):
    lines = b"\n".join(json.dumps(record).encode() for record in RECORDS)
    content = b"\n" + json.dumps(RECORDS, indent=indent).encode() + b"\n"
    expected = pairs_of(write("a.jsonl", lines))
    assert len(expected) == 5
    assert pairs_of(write("a.json", content)) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "a.json:1: expected a JSON object"),
        (b"[\n1\n]", "a.json:3: expected a JSON object"),
        (b'[\n{"source": "a" "b"}]', "a.json:2: expected a JSON object"),
        (b'[{"source": "a", "target": "b"}\n{}]', "a.json:2: expected a JSON"),
        (b'[{"source": "a", "target": "b"},\n', "its `]`; found none after"),
        (b'[{"source": "a", "target": "b"}]\n{}', "a.json:2: expected nothing"),
        (b'[\n\n{"source": "a"}]', "a.json:3: expected the keys"),
        (b'[{"a": "' + b'\\"' * 10**5, "a.json:1: expected a JSON object"),
    ],
)
def test_a_broken_array(write, content, message):
    with pytest.raises(DataError, match=message):
        ParallelText(write("a.json", content)).check()


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "a.parquet")
    rows = [
        {
            "translation": {"de": f"d{i}", "en": None if i == 2 else f"e{i}"},
            "stars": float(i % 2),
            "words": ["a", f"b{i}"],
            "tags": [0, 1],
            "text": f"text {i}",
        }
        for i in range(5)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    columns = ("translation.de", "translation.en")
    assert pairs_of(path, columns) == [
        (b"d%d" % i, b"e%d" % i) for i in (0, 1, 3, 4)
    ]
    report = ParallelText(path, columns=columns).check()
    assert report.blank == 1
    assert read_texts(path) == [f"text {i}" for i in range(5)]
    assert set(read_documents(path, ("stars", "text")).labels) == {"0", "1"}
    assert read_tagged_sentences(path).tags == [["0", "1"]] * 5
    message = r"a\.parquet:1: expected the keys 'source'.*translation\.de"
    with pytest.raises(DataError, match=message):
        ParallelText(path).check()
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parq"):
        read_texts(path)


def test_parquet_without_its_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="pip install pyarrow"):
        read_texts(tmp_path / "a.parquet")
