import os
import subprocess
import sys
from pathlib import Path

import pytest

from kseq.data import Tokenizer, open_prepared


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"eins {n} drei\tone {n} three\n" for n in range(200)]
    Path("a.tsv").write_text("".join(rows) + "\tx\n")


def test_prepare_and_check(call):
    arguments = ["prepare", "out", "--train", "a.tsv", "--vocab-size", "290"]
    facts = [
        "Training pairs: 180 (a.tsv)",
        "Validation pairs: 20 (held out of training by source)",
        "a.tsv: 1 of 201 pairs are left out: 1 with a blank side, 0 with a "
        "line over 65536 bytes.",
    ]
    for _ in range(2):  # the second time it is there already
        output, _ = call(*arguments)
        assert output.splitlines() == [
            *facts,
            "Next: kseq train translate_transformer --train out",
        ]
    source, target = open_prepared("out").tokenizers
    assert source is target
    assert source.vocab_size == 290

    output, _ = call("check", "out")
    assert output.splitlines()[-3:] == facts
    assert "Prepared pairs: source.model, source.offsets" in output
    values = Path("out/source.values").read_bytes()
    Path("out/source.values").write_bytes(values[::-1])
    _, notes = call("check", "out", code=2)
    assert "content of source.values has changed" in notes

    _, notes = call("prepare", "out", "--train", "a.tsv", code=2)
    assert "Use --overwrite, or a different folder." in notes
    output, _ = call(*arguments, "--overwrite")
    assert output.splitlines()[:3] == facts
    call("check", "out")


def test_tokenizers_of_a_run(call, run):
    call("prepare", "out", "--train", "a.tsv", "--from", run)
    [source, _] = open_prepared("out").tokenizers
    assert source.model == Tokenizer.load(run / "source.model").model


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train", "b.tsv"], "There is no file 'b.tsv'"),
        (["--train", "a.tsv", "--columns", "x", "y"], "the columns 'x'"),
        (["--train", "a.tsv", "--processes", "0"], "--processes"),
        (["--train", "a.tsv", "--from", "nothing"], "nothing"),
        (["--from", "a", "--pieces", "bpe"], "leave out --vocab-size"),
    ],
)
def test_wrong_arguments(refused, words, message):
    assert message in refused("prepare", "out", *words)
    assert not Path("out").exists()


def test_wrong_files_are_refused_without_tensorflow():
    script = (
        "import sys; from kseq.__main__ import main; "
        "code = main(['prepare', 'out', '--train', 'a.tsv', 'b.tsv']); "
        "sys.exit(code if 'tensorflow' not in sys.modules else 99)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        capture_output=True,
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
    )
    assert found.returncode == 2
    assert b"no file 'b.tsv'" in found.stderr
