import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq import cli, data, models, training
from kseq.commands import predict as predict_command
from kseq.commands.line_batches import LONGEST_LINE, map_lines, read_chunks
from kseq.commands.open_translator import open_translator

LEARNT = ["a b c", "c b a", "b b ü", "日 a a", "c ü c"]
SOURCES = ["a b c", "", "ü 日 b", "c b a a b c", "no such words"]


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1
    beam_size: int = 3


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run that has learnt five lines by heart."""
    path = tmp_path_factory.mktemp("runs") / "tiny"
    run = training.RunDirectory(path)
    run.start(Config())
    tokenizer = data.Tokenizer.train(LEARNT, 270, "bpe")
    run.save_tokenizers(tokenizer, tokenizer)
    model = models.Transformer(
        tokenizer.vocab_size,
        tokenizer.vocab_size,
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=16,
        ffn_dim=16,
        num_heads=2,
    )
    model.compile(keras.optimizers.Adam(0.01))
    run.save_model(model)
    batches = data.training_batches(
        tf.data.Dataset.from_tensor_slices((LEARNT, LEARNT)),
        tokenizer,
        tokenizer,
        batch_tokens=64,
        max_length=32,
        seed=1,
    )
    model.fit(
        batches,
        steps_per_epoch=60,
        epochs=2,
        shuffle=False,
        verbose=0,
        callbacks=[training.Checkpoints(run, monitor="loss", mode="min")],
    )
    return path


@pytest.fixture(scope="session")
def export(run):
    path = run.parent / "saved_models" / "tiny"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


@pytest.fixture
def predict(tmp_path, monkeypatch, capfd):
    """Runs `kseq predict` with an input; gives its lines, and its notes."""
    translators = {}

    def open_once(options):
        names = ("path", "weights", "beam_size", "length_penalty")
        key = tuple(getattr(options, name) for name in names)
        if key not in translators:
            translators[key] = open_translator(options)
        return translators[key]

    def call(path, text, *options, code=0):
        source = tmp_path / "input"
        source.write_bytes(text)
        capfd.readouterr()
        with open(source) as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert cli.main(["predict", str(path), *options]) == code
        answers, notes = capfd.readouterr()
        return answers.removesuffix("\n").split("\n"), notes

    monkeypatch.setattr(predict_command, "open_translator", open_once)
    return call


@pytest.fixture
def refused(capfd):
    """Runs a command that must fail; gives its one message."""

    def call(*arguments):
        capfd.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
        output, message = capfd.readouterr()
        assert (code, output) == (2, "")
        assert message.startswith("kseq")
        assert "Traceback" not in message
        return message

    return call


def lines_of(texts):
    return "\n".join(texts).encode() + b"\n"


def test_one_line_for_one_line(run, predict):
    answers, notes = predict(run, lines_of(SOURCES))
    assert len(answers) == len(SOURCES)
    assert answers[1] == ""
    assert notes == ""
    for source, answer in zip(SOURCES, answers, strict=True):
        assert predict(run, source.encode() + b"\n")[0] == [answer]


def test_lines_end_at_newlines_only(run, predict):
    text = "a\u2028b\r\nb\x85\x0b\x00c\n\ufeff\n\xa0".encode() + b"\xff\xfe"
    answers, _ = predict(run, text)
    assert len(answers) == 4
    assert predict(run, text.replace(b"\r", b""))[0] == answers
    assert predict(run, b"\xef\xbb\xbf" + text)[0] == answers


def test_scores_and_n_best_stand_in_columns(run, predict):
    plain, _ = predict(run, lines_of(SOURCES))
    answers, _ = predict(run, lines_of(SOURCES), "--n-best", "2", "--scores")
    rows = [answer.split("\t") for answer in answers]
    assert [row[1] for row in rows] == plain
    for score, _, next_score, _ in (row for row in rows if len(row) == 4):
        assert float(score) >= float(next_score)
    assert rows[1][0] == "0.0000"

    _, message = predict(run, b"a\n", "--n-best", "9", code=2)
    assert "needs as wide a beam" in message


def test_json_of_a_run_and_of_its_export(run, export, predict):
    options = ("--n-best", "3", "--json", "--attention")
    answers, _ = predict(run, lines_of(SOURCES), *options)
    exported, _ = predict(export, lines_of(SOURCES), *options)
    assert [json.loads(answer)["text"] for answer in answers] == [
        json.loads(answer)["text"] for answer in exported
    ]

    record = json.loads(answers[0])
    assert record["hypotheses"][0] == {
        "text": record["text"],
        "score": record["score"],
    }
    attention = record["attention"]
    weights = np.array(attention["weights"])
    assert weights.shape == (
        len(attention["target_tokens"]),
        len(attention["source_tokens"]),
    )
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-4)

    (only,), _ = predict(run, b"a\n", "--json")
    assert json.loads(only).keys() == {"text", "score"}


def test_a_line_of_two_megabytes_is_cut_and_told(run, predict):
    """A7."""
    text = b"a b\n" + b"a b c " * 350_000 + b"\nc\n"
    answers, notes = predict(run, text, "--beam-size", "1")
    assert len(answers) == 3
    assert notes == "line 2 is too long; its end was left out.\n"
    assert predict(run, b"c\n", "--beam-size", "1")[0] == answers[2:]


def test_scores_are_those_of_predict(run, predict, tmp_path, capfd):
    """D4."""
    path = tmp_path / "lines"
    path.write_bytes(lines_of(["", *LEARNT]))
    rows, _ = predict(run, path.read_bytes(), "--scores")
    scores, answers = zip(*(row.split("\t") for row in rows), strict=True)
    assert answers == ("", *LEARNT)
    assert cli.main(["score", str(run), str(path), str(path)]) == 0
    again = capfd.readouterr().out.split()
    for score, other in zip(scores, again, strict=True):
        assert float(score) == pytest.approx(float(other), abs=1.1e-4)


def test_evaluation_prints_scores_with_signatures(run, tmp_path, capfd):
    for name in ("source", "reference"):
        (tmp_path / name).write_bytes(lines_of(SOURCES))
    command = ["evaluate", run, tmp_path / "source", tmp_path / "reference"]
    assert cli.main([str(part) for part in command]) == 0
    output, progress = capfd.readouterr()
    bleu, chrf, exact = output.splitlines()
    assert bleu.startswith("BLEU ")
    assert "|tok:13a|" in bleu
    assert "|nc:6|" in chrf
    assert exact.endswith("%")
    assert "5 of 5 lines" in progress


def test_averaging_makes_weights_that_are_used(run, predict, tmp_path, capfd):
    copy = shutil.copytree(run, tmp_path / "copy")
    assert cli.main(["average", str(copy), "--last", "2"]) == 0
    assert capfd.readouterr().out.count("ckpt-") == 2
    used, _ = predict(copy, b"a b\n", "--scores")
    averaged, _ = predict(copy, b"a b\n", "--scores", "--weights", "average")
    assert used == averaged
    assert used != predict(run, b"a b\n", "--scores")[0]


def test_inspecting(run, export, capfd):
    assert cli.main(["inspect", str(run)]) == 0
    facts = capfd.readouterr().out
    for fact in ("Transformer", "parameters", "best score", "beam_size"):
        assert fact in facts
    assert cli.main(["inspect", str(export)]) == 0
    facts = capfd.readouterr().out
    for fact in ("serving_default", "text string", "MatMul"):
        assert fact in facts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", "2"], "--beam-size is for run directories"),
        (["--length-penalty", "0"], "--length-penalty is for run directories"),
        (["--weights", "last"], "--weights is for run directories"),
    ],
)
def test_what_is_fixed_in_an_export_is_refused(
    export, refused, options, message
):
    assert message in refused("predict", export, *options)


def test_bad_commands_are_refused(run, export, refused, tmp_path):
    short = tmp_path / "short"
    short.write_bytes(b"a\n")
    long = tmp_path / "long"
    long.write_bytes(b"a\nb\n")
    assert "no such-path" in refused("predict", "no such-path")
    assert "COMMAND" in refused()
    assert "at least 1" in refused("predict", run, "--batch-size", "0")
    assert "there is no file" in refused("score", run, short, tmp_path / "no")
    assert "is an export" in refused("score", export, short, short)
    assert "is an export" in refused("average", export)
    assert "has 1" in refused("evaluate", run, short, long)
    assert "needs --json" in refused("predict", run, "--attention")
    assert "there is no recipe" in refused("recipes", "copy", "nothing")


def test_debugging_keeps_the_traceback(run):
    with pytest.raises(ValueError, match="needs --json"):
        cli.main(["predict", str(run), "--attention", "--debug"])


def test_help_and_errors_do_without_tensorflow(tmp_path):
    program = (
        "import sys; from kseq import cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    )
    for arguments, code in [
        (["--help"], 0),
        (["predict", "--help"], 0),
        (["predict", tmp_path], 2),
        (["recipes"], None),
    ]:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
        )
        assert done.returncode == (code or 0), done.stderr
        assert time.perf_counter() - start < 3  # 0.1 where nothing else runs


def test_answers_do_not_wait_for_the_end_and_a_reader_may_leave(run):
    """D6, and what `kseq predict` is to a conversation."""
    with subprocess.Popen(
        [sys.executable, "-m", "kseq.cli", "predict", run, "--beam-size=1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(b"a b c\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        process.stdin.write(b"a\n")
        process.stdin.close()
        notes = process.stderr.read()
    assert process.returncode == 0
    assert b"Broken" not in notes
    assert b"Traceback" not in notes


def test_control_c_is_130(run, monkeypatch):
    read, write = os.pipe()
    with open(read) as file:
        monkeypatch.setattr(sys, "stdin", file)
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert cli.main(["predict", str(run)]) == 130
    os.close(write)


def test_recipes_are_listed_and_copied(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recipes"]) == 0
    listed = capfd.readouterr().out
    assert "translate_transformer" in listed
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 0
    assert (tmp_path / "translate_transformer.py").stat().st_size > 1000
    assert cli.main(["recipes", "copy", "translate_transformer"]) == 2


def test_chunks_come_as_soon_as_they_are_there():
    read, write = os.pipe()
    os.write(write, b"one\ntwo\nthr")
    chunks = read_chunks(read, size=10)
    assert next(chunks) == [b"one", b"two"]
    os.write(write, b"ee\n\n" + b"x" * (LONGEST_LINE - 9))
    assert next(chunks) == [b"three", b""]
    os.write(write, b"y" * 50 + b"\nend")
    os.close(write)
    (last,) = chunks
    assert [len(line) for line in last] == [LONGEST_LINE + 1, 3]
    os.close(read)


def test_chunks_are_bounded(tmp_path):
    (tmp_path / "input").write_bytes(b"a\n" * 25)
    with open(tmp_path / "input") as file:
        sizes = [len(chunk) for chunk in read_chunks(file.fileno(), size=10)]
    assert sizes == [10, 10, 5]


def test_lines_are_answered_in_their_order():
    lines = [b"x" * n for n in (3, 1, 4, 1, 5, 9, 2, 6)]
    batches = []

    def length(texts):
        batches.append(texts.numpy().tolist())
        return {"length": tf.strings.length(texts)}

    results = map_lines(length, lines, batch_size=3)
    assert [r["length"] for r in results] == [len(line) for line in lines]
    assert batches[0] == [lines[5], lines[7], lines[4]]
