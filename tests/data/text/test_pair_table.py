import gzip
import json

import pytest

from kseq.data import DataError, ParallelText, TextReport


def pairs_of(path, columns=()):
    """The same by Python and by tf.data."""
    text = ParallelText(path, columns=columns)
    pairs = [tuple(pair) for pair in text.pairs().as_numpy_iterator()]
    rows = zip(text.source_lines(), text.target_lines(), strict=True)
    usable = [pair for pair in rows if all(map(bytes.strip, pair))]
    assert pairs == usable
    return pairs


def as_json(*records):
    return "\n".join(json.dumps(record) for record in records).encode()


ANKI = b"Go.\tGeh.\tCC-BY 2.0\n\nHi.\tHallo!\tCC-BY 2.0\n"


def test_numbers_choose_and_order_columns(write):
    path = write("deu.txt", ANKI)

    assert pairs_of(path, ("1", "2")) == [
        (b"Go.", b"Geh."),
        (b"Hi.", b"Hallo!"),
    ]
    assert pairs_of(path, ("2", "1")) == [
        (b"Geh.", b"Go."),
        (b"Hallo!", b"Hi."),
    ]
    assert ParallelText(path, columns=("1", "2")).check() == TextReport(3, 1)


def test_names_choose_columns_in_any_order_of_files(write, tmp_path):
    write("1.tsv", b"\xef\xbb\xbf\r\n\nen\tid\tde\r\nGo.\t1\tGeh.\r\n")
    write("2.tsv", b"de\ten\nHallo!\tHi.\n")
    write("3.tsv.gz", gzip.compress(b"id\tde\tx\ten\n7\tJa.\t\tYes.\n"))

    assert pairs_of(tmp_path / "*.tsv*", ("en", "de")) == [
        (b"Go.", b"Geh."),
        (b"Hi.", b"Hallo!"),
        (b"Yes.", b"Ja."),
    ]


def test_source_and_target_are_names(write):
    for name, between in (("a.tsv", b"\t"), ("a.csv", b",")):
        rows = between.join([b"target", b"source\nb", b"a\n"])
        assert pairs_of(write(name, rows)) == [(b"a", b"b")]


def test_csv_has_quotes(write):
    rows = b'a,b\r\n"So, ""so""","x\ny\r\nz\tw"\r\n\r\n,\n \xc3\x28,c\n'
    path = write("a.csv", rows)
    packed = write("b.csv.gz", gzip.compress(rows))
    expected = [(b"a", b"b"), (b'So, "so"', b"x y z w"), (b" \xc3(", b"c")]

    assert pairs_of(path) == pairs_of(packed) == expected
    report = ParallelText(path).check()
    assert report == TextReport(5, blank=2, invalid=1, joined=1)


@pytest.mark.parametrize("sign", [",", ";"])
def test_a_lone_carriage_return_is_dropped_as_in_a_tsv(write, sign):
    rows = (
        'source,target\r\nGo\rnow,Los\r\n"Sto\rp",Halt\r\nHi,Hal\rlo\n'
        'a,"b\r\nc"\r\nd,e\r\r\n'
    )
    csv = write("a.csv", rows.replace(",", sign).encode())
    tsv = write("a.tsv", b"Go\rnow\tLos\n")
    found, of_tsv = (
        list(ParallelText(path).pairs().as_numpy_iterator())
        for path in (csv, tsv)
    )
    assert found == [
        *((b"Gonow", b"Los"), (b"Stop", b"Halt"), (b"Hi", b"Hallo")),
        *((b"a", b"b c"), (b"d", b"e")),
    ]
    assert of_tsv == found[:1]


def test_lists_of_json_are_sentences_and_references(write):
    content = as_json(
        {"source": ["a b.", "c.\n", "\ud800"], "target": ["x", "y\ty"]},
        {"source": [], "target": "blank"},
        {"source": "blank", "target": []},
        {"source": "d", "target": ["", "z"]},
    )
    path = write("a.jsonl", content)
    source = "a b. c.  \ufffd".encode()
    assert pairs_of(path) == [(source, b"x"), (source, b"y y"), (b"d", b"z")]
    assert ParallelText(path).check() == TextReport(6, blank=3, joined=2)


def test_json_lines_have_keys(write):
    content = as_json(
        {"source": "\ufeffa\nb", "target": "c\t\u2028"},
        {"target": "\ud800", "x": [], "source": "d"},
        {"source": "e", "target": ""},
    )
    for name in ("a.jsonl", "a.json", "A.JSONL"):
        assert pairs_of(write(name, content + b"\n\n")) == [
            ("\ufeffa b".encode(), "c \u2028".encode()),
            (b"d", "\ufffd".encode()),
        ]
    report = ParallelText(write("b.jsonl", content)).check()
    assert report == TextReport(3, blank=1, joined=1)


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.tsv", ANKI, (), "1: .*found 3 columns: 1 'Go.', 2 'Geh.', 3 'CC-B.*"
         r"for example --columns 1 2"),
        ("a.tsv", b"en\tde\na\tb\n", (), "1: .*found 2 columns: 1 'en', 2 'de'."
         r" .*--columns en de"),
        ("a.csv", b"English words/sentences,French words/sentences\na,b\n", (),
         "--columns 'English words/sentences' 'French words/sentences'"),
        ("a.tsv", ANKI, ("1", "4"), "1: expected the columns '1' and '4'; "),
        ("a.tsv", ANKI, ("1", "9" * 5000), "1: expected the columns '1' and "),
        ("a.tsv", ANKI, ("0", "1"), "1: expected the columns '0' and '1'; "),
        ("a.tsv", ANKI, ("en", "1"), "1: expected the columns 'en' and '1'; "),
        ("a.tsv", ANKI + b"a\tb\n", ("1", "2"), "4: expected 3 columns; "),
        ("a.tsv", b"%s\tb\tc\n" % (b"long " * 9), (),
         "1 'long long long long long'..., 2 'b', 3 'c'. Choose"),
        ("a.csv", b"a,b\nc\n", (), "2: expected 2 columns; found 1 in 'c'"),
        ("a.csv", b"abc\n", (), "1: expected source, a comma, target; "),
        ("a.csv", b"a\tb\n", (), "need a name that ends in .tsv"),
        ("a.tsv", b"a,b\n", (), "need a name that ends in .csv"),
        ("a.csv", b'a,b\n"c"d,e\n', (), "2: expected quotes as in RFC 4180"),
        ("a.csv", b'a,b\nc,"d\ne\nf,g\n', (), "2: expected quotes as in RFC"),
        ("a.csv", b'a,"b\nc\n"d,e\n', (), "1: expected quotes as in RFC 4180"),
        ("a.csv", b"a,b\rc,d\n", (), "1: expected two columns without names"),
        ("a.jsonl", b'{"source": "a", ', (), "1: expected a JSON object, one"),
        ("a.jsonl", b"[]", (), "a JSON object, one per line; found '.."),
        ("a.jsonl", b"\n" + b"[" * 10**5, (), "2: expected a JSON object"),
        ("a.jsonl", b'{"a":' * 10**5, (), "1: expected a JSON object"),
        ("a.jsonl", b"9" * 5000, (), "1: expected a JSON object"),
        ("a.jsonl", b"{}", (), "1: expected the keys 'source' and 'target'; f"),
        ("a.jsonl", b'{"en": "", "de": ""}', (), "found 'en', 'de'; choose"),
        ("a.jsonl", b'{"en": "", "de": ""}', ("en", "fr"), "'en' and 'fr'"),
        *(
            ("a.jsonl", as_json({"source": "a", "target": value}), (),
             "1: expected a string at 'target', or a list of strings; found ")
            for value in (1, None, ["a", 1], [["a"]], {"en": "a"}, True)
        ),
    ],
)  # fmt: skip
def test_a_broken_table_is_one_message(write, name, content, columns, message):
    path = write(name, content)

    with pytest.raises(DataError, match=message) as error:
        ParallelText(path, columns=columns).check()
    assert str(error.value).startswith(f"{path}:")
    assert len(str(error.value)) < 500 + len(str(path))


def test_a_quote_that_is_not_closed_does_not_fill_memory(write, monkeypatch):
    monkeypatch.setattr("kseq.data.files.tables._LARGEST_CELL", 1000)
    path = write("a.csv", b'a,"' + b"b\n" * 1000 + b'c"\n')

    with pytest.raises(DataError, match=r"a\.csv:1: .*field larger than"):
        ParallelText(path).check()


def test_a_very_long_cell_is_counted(write):
    path = write("a.csv", b"a,b\n" + b"c" * 2_000_000 + b",d\n")

    assert ParallelText(path).check() == TextReport(2, too_long=1)
