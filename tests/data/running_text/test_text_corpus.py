import functools
import gzip
import importlib
import json

import pytest

from kseq.data import (
    DataError,
    prepare_text,
    read_text_corpus,
    read_texts,
)
from kseq.data.running_text.brackets import SIZES
from kseq.data.running_text.text_corpus import lines_of

POEM = "A rose is a rose\n  is a rose.\n\nü\u2028日\n"


def test_a_file_is_one_document(write):
    plain = write("a.txt", POEM.encode())
    packed = write("b.txt.gz", gzip.compress(POEM.encode()))
    for path in (plain, packed):
        assert read_texts(path) == [POEM]
    for content in (POEM[:-1], "\ufeff" + POEM, POEM.replace("\n", "\r\n")):
        assert read_texts(write("c.txt", content.encode())) == [POEM]
    assert read_texts(write("d.txt", b"a\xffb")) == ["a\ufffdb\n"]


def test_a_pattern_is_several_files(write, tmp_path):
    write("1.txt", b"first")
    write("2.txt", b" \n\n")
    write("3.jsonl", b'{"text": "third"}')
    assert read_texts(tmp_path / "*") == ["first\n", "third"]


@pytest.mark.parametrize(
    ("name", "content", "left_out", "invalid"),
    [
        ("a.txt", b"gr\xfcn\nb\nc\xe9\n" * 9, 0, "18 lines are"),
        ("a.jsonl", b'{"text": "gr\xfcn"}\n\n{"text": " "}', 2, "1 line is"),
        ("a.csv", b'text\n"gr\xfcn\xfc"\n\n" "\nb\n', 2, "1 line is"),
        (
            "folder",
            {"a.txt": b"gr\xfcn", "b.txt": b"", "c.txt": b"\n"},
            2,
            "1 line is",
        ),
    ],
)
def test_what_is_left_out_and_invalid_is_counted(
    write, tmp_path, caplog, name, content, left_out, invalid
):
    path = tmp_path / name
    if isinstance(content, dict):
        path.mkdir()
        for inner, text in content.items():
            (path / inner).write_bytes(text)
    else:
        path.write_bytes(content)
    count = len(read_texts(path))
    expected = [f"{invalid} not valid UTF-8"]
    if left_out:
        total = count + left_out
        expected.insert(0, f"{left_out} of {total} documents are left out")
    for problems in (
        caplog.messages,
        read_text_corpus(path, log=False).problems,
        prepare_text(tmp_path / "prepared", path, log=False).problems,
    ):
        assert len(problems) == len(expected)
        for problem, part in zip(problems, expected, strict=True):
            assert part in problem


def test_records_are_documents(write):
    texts = ["a\nb ", 'say "x"', " \n", "日\t"]
    lines = "\n\n".join(json.dumps({"n": 1, "text": text}) for text in texts)
    kept = [texts[0], texts[1], texts[3]]
    for name in ("a.jsonl", "a.json"):
        assert read_texts(write(name, lines.encode())) == kept
    cells = 'n,text\n1,"a\nb "\n\n1,"say ""x"""\n1," \n"\n1,"日\t"\n'
    assert read_texts(write("a.csv", cells.encode())) == kept
    table = 'title\tbody\n1\tsay "x"\r\n2\t \n3\t b\n'
    assert read_texts(write("a.tsv", table.encode()), "body") == [
        'say "x"',
        " b",
    ]
    packed = write("a.tsv.gz", gzip.compress(table.encode()))
    assert read_texts(packed, "title") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\t\n", "contains no text"),
        ("a.jsonl", b'{"text": " "}', "contains no text"),
        ("a.jsonl", b'{"a": 1}', "a.jsonl:1: expected a string at 'text'"),
        ("a.jsonl", b'{"text": 5}', "a.jsonl:1: expected a string at 'text'"),
        ("a.jsonl", b'{"text": "a"}\n[]', "a.jsonl:2: expected a JSON object"),
        ("a.csv", b"a,b\n1,2", "a.csv:1: expected a column named 'text'"),
        ("a.tsv", b"a\ttext\n1", "a.tsv:2: expected 2 columns"),
        ("a.csv", b'text\n"a', "a.csv:2: expected quotes"),
        ("a.csv", b"text\n", "contains no text"),
    ],
)
def test_what_is_no_text(write, name, content, message):
    with pytest.raises(DataError, match=message):
        read_texts(write(name, content))


def test_plain_text_has_no_columns(write, tmp_path):
    """A column is refused where no file is a table that may have it."""
    plain, table = write("a.txt", b"a b c d"), write("b.csv", b"y\nb")
    for path in (plain, tmp_path, str(tmp_path / "*.txt")):
        with pytest.raises(DataError, match=r"no columns: leave .* column y\."):
            read_texts(path, "y")
        for read in (read_text_corpus, functools.partial(prepare_text, "out")):
            with pytest.raises(DataError, match="which has no columns"):
                read(path, plain, "y")
    assert read_text_corpus(plain, table, "y").test == ["b"]
    assert read_text_corpus(table, plain, "y").train == ["b"]


def test_a_surrogate_is_the_replacement_character(write):
    path = write("a.jsonl", rb'{"text": "a\ud800b"}')
    assert read_texts(path) == ["a\ufffdb"]


@pytest.mark.parametrize(
    "texts",
    [["0123456789" * 4 + "\n"], ["x" * 25, "y" * 11, "z" * 4], ["ab"] * 20],
)
def test_the_last_tenth_is_held_out(write, texts):
    if len(texts) == 1:
        path = write("a.txt", texts[0].encode())
    else:
        lines = "\n".join(json.dumps({"text": text}) for text in texts)
        path = write("a.jsonl", lines.encode())
    corpus = read_text_corpus(path)
    whole = "".join(texts)
    end = int(0.9 * len(whole))
    assert "".join(corpus.train) == whole[:end]
    assert "".join(corpus.validation) == whole[end:]
    assert all([*corpus.train, *corpus.validation])
    assert corpus.test is corpus.validation
    assert corpus.is_valid is None
    assert corpus.facts == (
        f"Training text: {end} characters in {len(corpus.train)} document"
        f"{'s' * (len(corpus.train) > 1)} ({path})",
        f"Validation text: {len(whole) - end} characters in "
        f"{len(corpus.validation)} document"
        f"{'s' * (len(corpus.validation) > 1)} (held out of training: the end)",
    )


def test_a_validation_file(write):
    train, other = write("a.txt", b"a b"), write("b.txt", b"c")
    corpus = read_text_corpus(train, other)
    assert (corpus.train, corpus.validation) == (["a b\n"], ["c\n"])
    assert str(other) in corpus.describe()[1]
    with pytest.raises(DataError, match="validation needs train"):
        read_text_corpus(None, other)
    with pytest.raises(DataError, match="column needs train"):
        read_text_corpus(column="body")


def test_too_little_to_hold_out(write):
    assert read_text_corpus(write("a.txt", b"a")).train == ["a"]
    with pytest.raises(DataError, match="too little text to hold some out"):
        read_text_corpus(write("a.jsonl", b'{"text": "a"}'))


def test_without_a_file_there_are_brackets(monkeypatch):
    # Of few: those of a split are drawn after those of all before it.
    module = importlib.import_module("kseq.data.running_text.brackets")
    sizes = {split: size // 20 for split, size in SIZES.items()}
    monkeypatch.setattr(module, "SIZES", sizes)
    corpus = read_text_corpus()
    found = [len(corpus.train), len(corpus.validation), len(corpus.test)]
    assert found == [*sizes.values()]
    assert corpus.is_valid(corpus.test[0])
    assert corpus.describe() == []


def test_lines_keep_their_breaks(write):
    assert lines_of("a\n\nb\r\u2028c\n") == ["a\n", "\n", "b\r\u2028c\n"]
    assert lines_of("") == []
    corpus = read_text_corpus(write("a.txt", POEM.encode()))
    assert "".join(corpus.lines()) == corpus.train[0]
