import gzip
import json

import pytest

from kseq.data import DataError, Dialogues, read_dialogues

TEXT = "Hi!\nHello!\nWho are you?\n\n\nIs it cold?\nNo.\n"
RECORDS = [
    {"id": 7, "turns": ["Hi!", "Hello!", "Who are you?"]},
    {"turns": ["Is it cold?", "No."]},
]
EXPECTED = Dialogues(
    contexts=[["Hi!"], ["Hi!", "Hello!"], ["Is it cold?"]],
    answers=["Hello!", "Who are you?", "No."],
)


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    return write


def test_a_text_and_json_lines(write, caplog):
    lines = "\n".join(map(json.dumps, RECORDS))
    assert read_dialogues(write("a.txt", TEXT)) == EXPECTED
    assert read_dialogues(write("a.jsonl", lines)) == EXPECTED
    assert read_dialogues(write("a.json", f"\n{lines}\n\n")) == EXPECTED
    packed = gzip.compress(TEXT.replace("\n", "\r\n").encode())
    assert read_dialogues(write("a.gz", packed)) == EXPECTED
    assert not caplog.records


def test_the_last_turns_are_kept(write):
    found = read_dialogues(write("a", "\n".join("abcde")), max_turns=2)
    assert found.contexts == [["a"], ["a", "b"], ["b", "c"], ["c", "d"]]
    assert found.answers == [*"bcde"]


def test_white_space_of_all_kinds_is_one_space(write):
    turns = [" a\t b\u2028c\xa0\n", "d\ud800"]
    found = read_dialogues(write("a.jsonl", json.dumps({"turns": turns})))
    assert found == Dialogues([["a b c"]], ["d\ufffd"])


def test_what_is_left_out_is_counted(write, caplog):
    records = [
        {"turns": ["a", " ", "b"]},
        {"turns": ["a"]},
        {"turns": []},
        {"turns": ["a", "x" * 65_537]},
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, records)))
    assert read_dialogues(path) == Dialogues([["a"]], ["b"])
    left_out, blank = (record.getMessage() for record in caplog.records)
    assert left_out == (
        f"{path}: 3 of 4 dialogues are left out: 2 with fewer than two turns, "
        "1 with a turn over 64 KiB."
    )
    assert blank == f"{path}: 1 blank turns are left out."
    caplog.clear()
    read_dialogues(write("b", b"a\n\xff\n"))
    assert "1 line is not valid UTF-8" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"turns": ["a", 1]}', "a.jsonl:1: expected a string for"),
        ("a.jsonl", '\n{"turns": "ab"}', "a.jsonl:2: expected the key 'turns'"),
        ("a.jsonl", '{"text": "a"}', "the key 'turns' with a list of strings"),
        ("a.jsonl", '["a", "b"]', "expected a JSON object"),
        (
            "a.jsonl",
            '{"turns": ["a"]}',
            "it has no dialogue of at least two turns",
        ),
        ("a.txt", "a\n\nb\n", "it has no dialogue of at least two turns"),
        ("a.txt", "", "a.txt is empty"),
        ("a.tsv", "a\tb", "found the name of a table"),
        # Without the time, which would be in the name of the test.
        (
            "a.csv.gz",
            gzip.compress(b"a,b", mtime=0),
            "found the name of a table",
        ),
        ("a.gz", b"a\nb", "is not a complete .gz file"),
        ("a", "\ufeffa\nb".encode("utf-16"), "UTF-16"),
    ],
)
def test_broken_files_are_one_message(write, name, content, message):
    path = write(name, content)
    with pytest.raises(DataError) as error:
        read_dialogues(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_lines_have_each_turn_once(write):
    found = read_dialogues(write("a", TEXT))
    turns = [turn for record in RECORDS for turn in record["turns"]]
    assert list(found.lines()) == turns
    assert list(EXPECTED.pairs().as_numpy_iterator())[1] == (
        b"Hi!\nHello!",
        b"Who are you?",
    )


def test_a_sample_is_spread_over_all():
    dialogues = Dialogues(
        [[str(n)] for n in range(10)],
        [str(n) for n in range(10)],
        evidence=[*range(10)],
    )
    found = dialogues.sample(4)
    assert found.answers == ["0", "2", "5", "7"]
    assert found.evidence == [0, 2, 5, 7]
    assert found.facts is None
    assert dialogues.sample(10) is dialogues


def test_a_dialogue_a_line(write, caplog):
    text = b"Hi . __eou__ Yes ? __eou__  No . __eou__\n\nA __eou__ B\nalone\n"
    path = write("a.txt", text)
    dialogues = read_dialogues(path)
    assert dialogues.contexts == [["Hi ."], ["Hi .", "Yes ?"], ["A"]]
    assert dialogues.answers == ["Yes ?", "No .", "B"]
    assert "3 lines are a dialogue each, whose turns end at" in caplog.text
    assert "1 with fewer than two turns" in caplog.text


def test_turns_of_several_utterances(write):
    text = b"Hi . __eou__ Yes ? __eou__ __eot__ No . __eou__ __eot__\n"
    dialogues = read_dialogues(write("a.txt", text))
    assert dialogues.contexts == [["Hi . Yes ?"]]
    assert dialogues.answers == ["No ."]
