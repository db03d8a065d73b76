import gzip
import json
import logging

import pytest

from kseq.data.documents.documents import (
    LONGEST_DOCUMENT,
    Documents,
    read_documents,
)
from kseq.data.files.data_error import DataError


def as_json(*records):
    return "\n".join(json.dumps(record) for record in records).encode()


def test_a_table_is_a_label_and_a_text(write):
    path = write("a.tsv", b"pos\tSo good.\nneg\tNo!\n")

    assert read_documents(path) == Documents(
        ["So good.", "No!"], ["pos", "neg"]
    )


def test_a_first_line_names_the_columns(write):
    rows = b"stars\tid\tlabel\ttext\n5\ta1\tpos\tSo good.\n1\ta2\tneg\tNo!\n"
    path = write("a.tsv", rows)

    assert read_documents(path).labels == ["pos", "neg"]
    assert read_documents(path).texts == ["So good.", "No!"]
    assert read_documents(path, ("stars", "id")) == Documents(
        ["a1", "a2"], ["5", "1"]
    )


def test_columns_of_other_names_must_be_there(write):
    path = write("a.tsv", b"stars\tid\ttext\n5\ta1\tSo good.\n")
    two = write("b.tsv", b"5\tSo good.\n")

    for table, columns, expected, found in (
        (path, ("label", "text"), "'label' and 'text'", "3 columns: 1 'stars'"),
        (path, ("rating", "text"), "'rating' and 'text'", "3 columns: 1 'st"),
        (two, ("label", "body"), "'label' and 'body'", "2 columns: 1 '5', 2 "),
        (two, ("1", "3"), "'1' and '3'", "2 columns: 1 '5'"),
        (two, ("0", "1"), "'0' and '1'", "2 columns: 1 '5'"),
    ):
        message = rf"\.tsv:1: expected the columns {expected}; found {found}"
        with pytest.raises(DataError, match=message):
            read_documents(table, columns)


def test_a_first_line_of_no_columns_is_not_shown_whole(write):
    path = write("a.tsv", b"So good. " * 1000 + b"\n")

    found = r"a\.tsv:1: .*found 1 column: 1 'So"
    with pytest.raises(DataError, match=found) as error:
        read_documents(path)
    assert len(str(error.value)) < 300 + len(str(path))


def test_json_lines_hold_texts(write):
    path = write(
        "a.jsonl",
        as_json(
            {"label": "pos", "text": "So\ngood.", "id": 1},
            {"text": "No!", "label": 0},
            {"text": "No?", "label": True},
        ),
    )

    assert read_documents(path) == Documents(
        ["So\ngood.", "No!", "No?"], ["pos", "0", "true"]
    )


def test_json_lines_hold_sentences(write):
    path = write(
        "a.jsonl",
        as_json(
            {
                "label": "pos",
                "sentences": ["So good.", " ", "Very\ngood.\u2028"],
            },
            {"label": "neg", "sentences": ["", "No!"]},
        ),
    )

    assert read_documents(path, ("label", "ignored")) == Documents(
        ["So good.\nVery good.\u2028", "No!"], ["pos", "neg"], in_lines=True
    )


def test_two_texts_are_the_lines_of_a_pair(write):
    rows = "gold\tfirst\tsecond\nyes\tA dog.\tAn\u2028animal.\nno\tA\t\n"
    table = write("a.tsv", rows.encode())
    records = write(
        "a.jsonl",
        as_json(
            {"gold": "yes", "first": "A dog.", "second": "An\u2028animal."},
            {"gold": "no", "first": "A", "second": " "},
        ),
    )
    quoted = write("a.csv", b'"A\ndog.\tx",\xff,yes\r\n')
    pairs = Documents(["A dog.\nAn\u2028animal."], ["yes"], in_lines=True)

    assert read_documents(table, ("gold", "first", "second")) == pairs
    assert read_documents(records, ("gold", "first", "second")) == pairs
    assert read_documents(quoted, ("3", "1", "2")) == Documents(
        ["A dog. x\n\ufffd"], ["yes"], in_lines=True
    )


def test_a_record_of_a_pair_has_both_texts(write):
    path = write("a.jsonl", as_json({"label": 1, "a": "x", "sentences": []}))

    message = "expected the keys 'label' and 'a' and 'b'; found"
    with pytest.raises(DataError, match=message):
        read_documents(path, ("label", "a", "b"))
    with pytest.raises(DataError, match="expected a string at 'sentences'"):
        read_documents(path, ("label", "a", "sentences"))


def test_keys_can_have_other_names(write):
    record = {"label": "a", "stars": 4, "text": "b", "body": "So good."}
    path = write("a.jsonl", as_json(record))

    assert read_documents(path, ("stars", "body")) == Documents(
        ["So good."], ["4"]
    )


def test_a_truncated_gz_is_named(write):
    lines = b"".join(b"pos\tnumber %d\n" % number for number in range(10_000))
    whole = gzip.compress(lines)

    assert len(read_documents(write("a.tsv.gz", whole)).texts) == 10_000
    with pytest.raises(DataError, match=r"b\.tsv\.gz is not a complete \.gz"):
        read_documents(write("b.tsv.gz", whole[: len(whole) // 2]))


def test_gz_and_plain_files_have_the_same_documents(write):
    content = as_json({"label": "pos", "text": "So good."})
    plain = read_documents(write("a.jsonl", content))

    assert plain == Documents(["So good."], ["pos"])
    assert read_documents(write("a.jsonl.gz", gzip.compress(content))) == plain


def test_invalid_utf8_is_counted_and_logged_once(write, caplog):
    path = write("a.tsv", b"pos\tgut\nneg\tschl\xffcht\nneg\tschl\xfecht\n")

    documents = read_documents(path)

    assert documents.texts == ["gut", "schl\ufffdcht", "schl\ufffdcht"]
    assert caplog.text.count("2 lines are not valid UTF-8") == 1


def test_a_warning_is_one_line_whatever_the_name_of_the_file(write, caplog):
    read_documents(write("a\x1b\n.tsv", b"pos\tgut\n\n"))

    [message] = caplog.messages
    assert "\\x1b\\n.tsv: 1 of 2 documents are left out" in message


def test_halves_of_characters_in_json_are_replaced(write):
    path = write(
        "a.jsonl", rb'{"label": "\ud800", "text": "\udc00 \ud83d\ude00"}'
    )

    assert read_documents(path) == Documents(["\ufffd \U0001f600"], ["\ufffd"])


def test_one_document_a_newline(write):
    texts = [
        "one",
        "t\u2028w\u0085o",
        "thr\x0b\x0c\x1cee",
        "f\x00o\rur",
        "five",
    ]
    lines = [f"pos\t{text}" for text in texts]
    lf = write("lf", "\n".join(lines).encode())
    crlf = write(
        "crlf", b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n"
    )

    assert read_documents(lf) == Documents(texts, ["pos"] * 5)
    assert read_documents(crlf) == read_documents(lf)


def test_a_byte_order_mark_and_crlf_before_columns_and_json(write):
    table = b"\xef\xbb\xbflabel\tid\ttext\r\npos\t1\tgood\r\n"
    record = as_json({"label": "pos", "text": "good"})

    for path in (
        write("a.tsv", table),
        write("a.jsonl", b"\xef\xbb\xbf" + record + b"\r\n"),
    ):
        assert read_documents(path) == Documents(["good"], ["pos"])


TEXTS = [
    "no-break\u00a0and\u3000ideographic\u2009spaces",
    "caf\u00e9 cafe\u0301 \ufb01",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u202eabc\u202c",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    ' "quoted" <b>\u2581 </s> &amp; \\t ',
]


def test_text_comes_through_unchanged(write, caplog):
    caplog.set_level(logging.WARNING)
    table = write("a.tsv", "\n".join(f"x\t{text}" for text in TEXTS).encode())
    texts = [{"label": "x", "text": text} for text in TEXTS]
    sentences = {"label": "x", "sentences": TEXTS}

    assert read_documents(table).texts == TEXTS
    assert read_documents(write("a.jsonl", as_json(*texts))).texts == TEXTS
    assert read_documents(write("b.jsonl", as_json(sentences))).texts == [
        "\n".join(TEXTS)
    ]
    assert caplog.text == ""


def test_labels_lose_the_space_around_them(write):
    path = write("a.tsv", b" pos \tgood\n")

    assert read_documents(path).labels == ["pos"]


def test_blank_documents_are_counted(write, caplog):
    table = write("a.tsv", b"\npos\tone\n\r\npos\t \npos\t\n \t \n\n")
    records = write(
        "a.jsonl",
        as_json({"label": 1, "text": " \n"}, {"label": 1, "text": "a"})
        + b"\n\n",
    )
    sentences = write(
        "b.jsonl",
        as_json(
            {"label": 1, "sentences": [" "]}, {"label": 1, "sentences": "a"}
        )
        .replace(b'"a"', b'["a"]')
        .replace(b'[" "]', b"[]"),
    )

    assert read_documents(table).texts == ["one"]
    assert read_documents(records).texts == ["a"]
    assert read_documents(sentences).texts == ["a"]
    for expected in (
        "a.tsv: 6 of 7 documents are left out: 6 blank",
        "a.jsonl: 2 of 3 documents are left out: 2 blank",
        "b.jsonl: 1 of 2 documents are left out: 1 blank",
    ):
        assert caplog.text.count(expected) == 1


def test_a_very_long_document_is_counted(write, caplog):
    longest = "ä" * (LONGEST_DOCUMENT // 2)
    lines = f"pos\tshort\npos\t{longest}\npos\t{longest}a\n".encode()

    assert read_documents(write("a.tsv", lines)).texts == ["short", longest]
    assert "1 of 3 documents are left out: 0 blank, 1 over" in caplog.text
    long = as_json({"label": 1, "sentences": ["lang " * 400_000] * 2})
    short = as_json({"label": 1, "sentences": ["kurz"]})
    path = write("a.jsonl", long + b"\n" + short)
    assert read_documents(path).texts == ["kurz"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'"a" b', r"expected 2 columns, label, text; found 1 in '\"a\" b'"),
        (b"a\tb\tc", r"expected 2 columns, .*; found 3 in 'a\\tb\\tc'"),
        (b"\tb", "the label is blank"),
        (b"\xe2\x80\x8b\tb", "the label is blank"),
        (b" \tb", "the label is blank"),
    ],
)
def test_a_broken_table_is_named_by_file_and_line(write, line, message):
    path = write("a.tsv", b'"pos"\tso "good\n\n' + line + b"\n")

    with pytest.raises(DataError, match=rf"a\.tsv:3: {message}"):
        read_documents(path)


def test_named_columns_are_counted(write):
    path = write("a.tsv", b"label\tid\ttext\npos\tgood\n")

    with pytest.raises(
        DataError, match=r":2: expected 3 columns, label, id, text; found 2 in"
    ):
        read_documents(path)


def test_quotes_are_text(write):
    path = write("a.tsv", b'"pos"\tso "good\n"neg"\t"bad\n')

    assert read_documents(path) == Documents(
        ['so "good', '"bad'], ['"pos"', '"neg"']
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"label": 1, "te',
            r"a JSON object, one per line; found '{\"label\": 1",
        ),
        (
            b'["a", "b"]',
            r"a JSON object, one per line; found '\[\"a\"",
        ),
        (b"[" * 100_000, r"a JSON object, one per line; found '\[\["),
        (b'{"text": "a"}', "expected the keys 'label' and either 'text' or"),
        (b'{"label": 1}', "either 'text' or 'sentences'; found '{\"label"),
        (
            b'{"label": 1, "text": "a", "sentences": ["a"]}',
            "either 'text' or 'sentences'; found '{\"label",
        ),
        (b'{"label": null, "text": "a"}', "expected a string at 'label'; fo"),
        (b'{"label": NaN, "text": "a"}', "a string at 'label'; found nan"),
        (b'{"label": " ", "text": "a"}', "the label is blank"),
        (b'{"label": 1, "text": ["a"]}', r"a string at 'text'; found \['a'\]"),
        (b'{"label": 1, "sentences": "a"}', "strings at 'sentences'; found 'a"),
        (b'{"label": 1, "sentences": [1]}', r"strings at .*; found \[1\]"),
        (
            b'{"label": 1, "sentences": ["a"]}',
            "expected a text, as .*; found sent",
        ),
    ],
)
def test_broken_json_is_named_by_file_and_line(write, line, message):
    first = as_json({"label": "pos", "text": "good"})
    path = write("a.jsonl", first + b"\n" + line + b"\n")

    with pytest.raises(DataError, match=rf"a\.jsonl:2: .*{message}") as error:
        read_documents(path)
    assert len(str(error.value)) < 300 + len(str(path))


def test_files_that_cannot_be_used_are_named(write, tmp_path):
    messages = {
        tmp_path / "missing": "There is no file .*missing",
        tmp_path / "*.none": r"There is no file .*\*\.none",
        tmp_path: "is a directory",
        write("empty", b""): "empty is empty",
        write("blank", b"\n \n"): "blank: there is no document in it",
        write("header", b"label\ttext\n"): "header: there is no document",
        write("blank.jsonl", b"\n"): "blank.jsonl: there is no document",
    }

    for path, message in messages.items():
        with pytest.raises(DataError, match=message):
            read_documents(path)


def test_a_pattern_names_files_in_order(write, tmp_path):
    write("2.tsv", b"\xef\xbb\xbftext\tlabel\nsecond\tb\n")
    write("10.tsv", b"label\ttext\tid\na\tfirst\t1\n")
    write("3.jsonl", as_json({"label": "c", "text": "third"}))

    assert read_documents(tmp_path / "*[v,l]") == Documents(
        ["first", "second", "third"], ["a", "b", "c"]
    )


def test_csv_has_quotes_and_lines_in_texts(write):
    rows = b'id,stars,text\r\n1,5,"So ""good"",\nreally."\r\n\r\n2,1,No!\r\n'
    expected = Documents(['So "good",\nreally.', "No!"], ["5", "1"])
    plain = write("a.csv", rows)
    packed = write("a.csv.gz", gzip.compress(b"\xef\xbb\xbf" + rows))

    assert read_documents(plain, ("stars", "text")) == expected
    assert read_documents(packed, ("stars", "text")) == expected


def test_columns_have_numbers(write):
    path = write("a.tsv", b"So good.\tx\t5\nNo!\tx\t1\n")

    assert read_documents(path, ("3", "1")) == Documents(
        ["So good.", "No!"], ["5", "1"]
    )


@pytest.mark.parametrize(
    "columns",
    [(), ("a",), ("", "a"), ("a", "a"), ("a", "b", "a"), tuple("abcd")],
)
def test_columns_are_two_or_three(write, columns):
    with pytest.raises(DataError, match="columns takes two to 3 different"):
        read_documents(write("a.tsv", b"a\tb\n"), columns)


@pytest.mark.parametrize(
    "label", ["a\nb", "a\tb", "a\x1b[1mb", "\0", "a\u2028b"]
)
def test_a_label_is_one_line(write, label):
    good = as_json({"label": "a", "text": "b"})
    path = write(
        "a.jsonl", good + b"\n" + as_json({"label": f"x{label}x", "text": "b"})
    )

    with pytest.raises(
        DataError, match=r"a\.jsonl:2: expected a label without newlines"
    ) as error:
        read_documents(path)
    assert str(error.value).isprintable()


def test_texts_are_not_taken_for_labels(write):
    review = "So good. " * 99
    swapped = f"label\ttext\n{review}\t5\n".encode()
    stars = f"text,stars\n{review},5\n".encode()
    for name, content, columns, hint in (
        ("a.tsv", swapped, ("label", "text"), "--columns text label"),
        ("a.csv", stars, ("text", "stars"), "--columns stars text"),
    ):
        path = write(name, content)
        with pytest.raises(
            DataError, match=rf":2: .*column '{columns[0]}'; .*use {hint}"
        ) as error:
            read_documents(path, columns)
        assert "good" not in str(error.value)
