import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kseq.commands import check
from kseq.user_error import UserError


def options(
    files,
    validation=None,
    columns=None,
    documents=False,
    features=None,
    dialogues=False,
    text=False,
    tags=False,
    images=None,
):
    return SimpleNamespace(
        tags=tags,
        files=files,
        validation=validation,
        columns=columns,
        documents=documents,
        features=features,
        dialogues=dialogues,
        text=text,
        audio=None,
        images=images,
        filter=False,
        scripts=None,
        max_ratio=None,
        max_characters=None,
    )


@pytest.fixture(autouse=True)
def files(here):
    rows = "".join(f"s{n},t{n},{n % 2}\n" for n in range(20))
    (here / "a.csv").write_text("source,target,label\n,x,1\n" + rows)
    (here / "b.tsv").write_text("s1\tt1\n")


def test_numbers_of_pairs(capsys, caplog):
    check.run(options(["a.csv"]))

    assert capsys.readouterr().out.splitlines() == [
        "Training pairs: 18 (a.csv)",
        "Validation pairs: 2 (held out of training by source)",
        "a.csv: 1 of 21 pairs are left out: 1 with a blank side, 0 with a "
        "line over 65536 bytes.",
    ]
    assert caplog.text == ""

    check.run(options(["a.csv"], ["b.tsv"]))
    assert "1 of 1 validation sources are also in" in capsys.readouterr().out


def test_numbers_of_documents(capsys):
    check.run(options(["a.csv"], columns=("label", "target"), documents=True))

    assert capsys.readouterr().out.splitlines() == [
        "Training documents: 19 (a.csv)",
        "Validation documents: 2 (held out of training)",
        "Labels: 2",
    ]


def test_numbers_of_dialogues(capsys):
    Path("d.txt").write_text("a\nb\nc\n\nd\ne\n\nf\n")
    check.run(options(["d.txt"], dialogues=True))
    assert capsys.readouterr().out.splitlines() == [
        "Training dialogues: 1, 2 answers (d.txt)",
        "Validation dialogues: 1, 1 answers (held out of training)",
        "d.txt: 1 of 3 dialogues are left out: 1 with fewer than two turns, "
        "0 with a turn over 64 KiB.",
    ]
    for wrong, message in (
        ({"documents": True}, "--documents and --dialogues are"),
        ({"columns": ("a", "b")}, "leave out --columns"),
        ({"files": ["d.txt", "d.txt"]}, "--dialogues takes one file"),
    ):
        given = {"files": ["d.txt"], "dialogues": True, **wrong}
        with pytest.raises(UserError, match=message):
            check.run(options(**given))


def test_numbers_of_text(capsys):
    Path("d.txt").write_text("abcde\nghi\n")
    check.run(options(["d.txt"], text=True))
    check.run(options(["a.csv"], text=True, columns=("source",)))
    assert capsys.readouterr().out.splitlines() == [
        "Training text: 9 characters in 1 document (d.txt)",
        "Validation text: 1 characters in 1 document (held out of training: "
        "the end)",
        "Training text: 45 characters in 19 documents (a.csv)",
        "Validation text: 5 characters in 2 documents (held out of training: "
        "the end)",
        "a.csv: 1 of 21 documents are left out: 1 blank.",
    ]


def test_numbers_of_captions(capsys):
    np.savez("a.npz", features=np.ones((3, 4, 2)), names=["s1", "s2", "s3"])
    Path("c.tsv").write_text("s1\ta dog\ns2\ta cat\n")
    check.run(options(["c.tsv"], features="a.npz"))

    assert capsys.readouterr().out.splitlines() == [
        "Training pictures: 1, with 1 captions (c.tsv)",
        "Validation pictures: 1, with 1 captions (held out of training by "
        "picture)",
        "1 of 3 pictures in a.npz have no caption.",
    ]


def test_pictures_of_a_folder(capsys):
    Path("pictures").mkdir()
    picture = tf.io.encode_png(np.zeros((4, 4, 3), np.uint8)).numpy()
    for number in range(3):
        Path(f"pictures/{number}.png").write_bytes(picture)
    Path("c.tsv").write_text("0.png\ta dog\n0.png\tdogs\n1.png\ta cat\n")
    Path("d.tsv").write_text("1.png\ta cat\n2.png\ta bird\n")
    check.run(options(["c.tsv"], ["d.tsv"], images="pictures"))

    assert capsys.readouterr().out.splitlines() == [
        "Training pictures: 2, with 3 captions (c.tsv)",
        "Validation pictures: 2, with 2 captions (d.tsv)",
        "1 of 2 validation pictures are also in training: scores on them will "
        "be too high.",
    ]
    Path("pictures/1.png").write_bytes(picture[:30])
    with pytest.raises(UserError, match=r"c\.tsv:3: .*1\.png is not a"):
        check.run(options(["c.tsv"], images="pictures"))
    Path("c.tsv").write_text("0.png\ta dog\n9.png\ta cat\n")
    with pytest.raises(UserError, match="a picture in pictures; found '9"):
        check.run(options(["c.tsv"], images="pictures"))


def test_most_mistakes_do_without_tensorflow():
    Path("empty.txt").write_text("")
    Path("one.jsonl").write_text('{"source": "a"}\n')
    os.mkfifo("pipe.tsv")
    wrong = [
        "none.tsv",
        "empty.txt b.tsv",
        "b.tsv --validation empty.txt",
        "pipe.tsv",
        "a.csv --columns source tagret",
        "a.csv --documents",
        "one.jsonl",
        "a.csv --features b.tsv --columns x y",
        "a.csv b.tsv --documents",
        "none.txt --text",
        "a.csv --text",
        "a.csv --text --columns source target",
        "a.csv --columns source",
        "a.csv --images . --audio .",
        "b.tsv --images . --columns x y",
    ]
    program = (
        "import sys; from kseq import cli\n"
        "for words in sys.argv[1:]:\n"
        "    assert cli.main(['check', *words.split()]) == 2\n"
        "assert not {'tensorflow', 'keras', 'numpy'} & sys.modules.keys()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *wrong],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    assert done.returncode == 0, done.stderr
    messages = done.stderr.splitlines()
    assert len(messages) == len(wrong)
    assert all(line.startswith("kseq check: ") for line in messages)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (options(["a.csv"] * 2, features="x"), "--features takes one file"),
        (options(["a.csv"], documents=True, features="x"), "mutually"),
        (options(["none.tsv"]), "There is no file"),
        (options([""]), "found an empty one"),
        (options(["a.csv"], columns=("x", "y")), "a.csv:1: expected the col"),
        (options(["a.csv", "b.tsv"], documents=True), "takes one file"),
        (options(["a.csv"], documents=True), "a.csv:1: expected the columns"),
    ],
)
def test_bad_files_are_one_message(wrong, message):
    with pytest.raises(UserError, match=message) as error:
        check.run(wrong)
    assert error.value.exit_code == 2
