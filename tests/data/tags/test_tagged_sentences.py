import gzip
import json
import logging
import re

import pytest

from kseq.data import DataError, TaggedSentences, read_tagged_sentences
from kseq.data.tags.tagged_sentences import LONGEST_SENTENCE

EXPECTED = TaggedSentences(["to New York", "Hi"], [["O", "B", "I"], ["O"]])
CONLL = "to\tO\nNew\tB\nYork\tI\n\nHi\tO\n"
FORMS = {
    "a.conll": CONLL,
    "a.txt": "\n\nto O\nNew   B\nYork I  \r\n \t\n\nHi O",
    "a.tsv": "words\ttags\nto New York\tO B I\nHi\tO\n",
    "plain.tsv": "to New  York\tO B I\n\nHi \tO\n",
    "a.csv": 'id,tags,words\n1,O B I,"to New York"\n2,O,Hi\n',
    "a.jsonl": '{"words": "to New York", "tags": "O B I"}\n'
    '{"words": ["Hi"], "tags": ["O"], "more": 1}\n',
    "a.conllu": "# text = to New York\n"
    "1\tto\tto\tO\t_\n2-3\tNewYork\t_\t_\t_\n2\tNew\tnew\tB\t_\n"
    "2.1\tx\tx\tX\t_\n3\tYork\tyork\tI\t_\n\n# x\n1\tHi\thi\tO\t_\n",
}


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file of some name."""

    def read(text, name="a.conll", *columns):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(content)
        return read_tagged_sentences(path, *columns)

    return read


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same(read, name):
    assert read(FORMS[name], name) == EXPECTED
    content = gzip.compress(FORMS[name].encode())
    assert read(content, f"{name}.gz") == EXPECTED


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("a.conll", "to X O\nNew X B\nYork X I\n\nHi X O", ("1", "3")),
        ("a.conll", "O to\nB New\nI York\n\nO Hi", ("2", "1")),
        ("a.tsv", "O B I\tx\tto New York\nO\tx\tHi", ("3", "1")),
        ("a.tsv", "w\tt\nto New York\tO B I\nHi\tO\n", ("w", "t")),
        ("a.jsonl", '{"w": "to New York", "t": ["O", "B", "I"]}\n'
         '{"w": "Hi", "t": "O"}', ("w", "t")),
        ("a.conllu", FORMS["a.conllu"], ("2", "4")),
    ],
)  # fmt: skip
def test_columns_are_chosen(read, name, text, columns):
    assert read(text, name, columns) == EXPECTED


def test_several_files_by_a_pattern(tmp_path):
    """A file ends a sentence."""
    (tmp_path / "1.conll").write_text("a X\nb Y")
    (tmp_path / "2.conll").write_text("c X\n")
    assert read_tagged_sentences(tmp_path / "*.conll").texts == ["a b", "c"]


def test_white_space_of_ascii_alone_separates_words(read):
    words = "a\u00a0b \u2003 c\u2028d"
    found = read(f"{words}\tX Y Z\n", "a.tsv")
    assert found == TaggedSentences([words], [["X", "Y", "Z"]])
    found = read(json.dumps({"words": words, "tags": "X Y Z"}), "a.jsonl")
    assert found.texts == [words]


def test_numbers_are_tags(read):
    found = read('{"words": ["a", "b"], "tags": [0, 12]}', "a.jsonl")
    assert found.tags == [["0", "12"]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a b\tX Y\na b c\tX Y\n", ":2: expected one tag for each "
         "word; found 3 words and 2 tags"),
        ("a.csv", "words,tags\na,X Y\n", ":2: .*found 1 words and 2 tags"),
        ("a.jsonl", '\n{"words": ["a"], "tags": []}', ":2: .*1 words and 0"),
        ("a.conll", "a X\nb\n", ":2: expected 2 columns; found 1"),
        ("a.conll", "a X\nb X Y\n", ":2: expected 2 columns; found 3"),
        ("a.conll", "a\n", ":1: expected a word and its tag in two columns; "
         "found 1 in b'a'|:1: expected .* found 1 in 'a'"),
        ("a.conll", "a X Y Z\n", ":1: .*for example --columns 1 4"),
        ("a.conll", "a b\tX\n", ":1: expected words without white space"),
        ("a.conll", "a\tX Y\n", ":1: expected tags without white space"),
        ("a.conll", "ok\tX\na\t\n", ":2: expected 2 columns; found 1"),
        ("a.conll", "ok\tX\n\tX\n", ":2: expected 2 columns; found 1"),
        ("a.conll", "a\tX\x07\n", "control characters"),
        ("a.conll", f"a\t{'x' * 101}\n", "at most 100 characters; found one"),
        ("a.jsonl", '{"words": ["a b"], "tags": ["X"]}', "words without"),
        ("a.jsonl", '{"words": [""], "tags": ["X"]}', "words without white"),
        ("a.jsonl", '{"words": ["a"], "tags": ["X Y"]}', "tags without white"),
        ("a.jsonl", '{"words": ["a"], "tags": [""]}', "tags without white"),
        ("a.jsonl", '{"words": ["a"], "tags": [null]}', "a list of strings"),
        ("a.jsonl", '{"words": 5, "tags": "X"}', "a list of strings"),
        ("a.jsonl", '{"words": "a"}', ":1: expected the keys 'words' and"),
        ("a.jsonl", "[1]", ":1: expected a JSON object"),
        ("a.tsv", "a\tb\tc\n", ":1: expected the columns 'words' and 'tags'"),
        ("a.tsv", "words\ttags\n", "there is no sentence in it"),
        ("a.conll", "\n\n", "there is no sentence in it"),
        ("a.conllu", "no table\n", "there is no sentence in it"),
        ("a.conll", "", "is empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_message(read, tmp_path, name, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read(text, name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("columns", [("a",), ("a", "a"), ("", "b"), "abc"])
def test_wrong_columns(read, columns):
    with pytest.raises(DataError, match="two different names or numbers"):
        read(CONLL, "a.conll", columns)


def test_names_of_columns_that_are_not_there(read):
    with pytest.raises(DataError, match="Choose the two by their numbers"):
        read(CONLL, "a.conll", ("word", "tag"))
    with pytest.raises(DataError, match=re.escape("'1' and '3'")):
        read(CONLL, "a.conll", ("1", "3"))


def test_what_is_left_out_is_counted(read, caplog):
    long = " ".join(["a"] * (LONGEST_SENTENCE + 1))
    tags = long.upper()
    with caplog.at_level(logging.WARNING):
        found = read(f"{long}\t{tags}\na\tX\n\n \t \n".encode() + b"\xff\tX",
                     "a.tsv")  # fmt: skip
    assert found.texts == ["a", "\ufffd"]
    assert "3 of 5 sentences are left out: 2 blank, 1 of more than" in (
        caplog.text
    )
    assert "1 line is not valid UTF-8" in caplog.text


def test_a_warning_is_one_line_whatever_the_name_of_the_file(read, caplog):
    read(b"a\tX\n\n", "a\n.tsv")
    [message] = caplog.messages
    assert "a\\n.tsv: 1 of 2 sentences are left out" in message


def test_the_start_of_a_document_is_no_sentence(read):
    """As in CoNLL-2003."""
    text = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-ORG\n"
    found = read(text, "eng.train", ("1", "4"))
    assert found == (["EU"], [["B-ORG"]])


def test_spaces_inside_a_word_of_conllu(read):
    """As in Vietnamese; they stay one word."""
    line = "{}\t{}\t_\t{}\t_\t_\t0\troot\t_\t_\n"
    words = [("1", "Sinh viên", "NOUN"), ("2", "học", "VERB")]
    text = "# text = Sinh viên học\n" + "".join(
        line.format(*word) for word in words
    )
    for name in ("a.conllu", "a.conll"):  # by its name, and by its columns
        found = read(text, name)
        assert found.texts == ["Sinh\u00a0viên học"]
        assert found.tags == [["NOUN", "VERB"]]


def test_spaces_inside_words_are_said(read, caplog):
    read("1\ta b\t_\tX\n", "a.conllu")
    assert "1 words have a space inside, which becomes" in caplog.text
