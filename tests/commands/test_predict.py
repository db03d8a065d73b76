import json
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from kseq import cli
from kseq.serving.safe_graph import trust
from tests.commands.some_lines import LEARNT, SOURCES, lines_of


def test_one_line_for_one_line(run, predict):
    answers, notes = predict(run, lines_of(SOURCES))
    assert len(answers) == len(SOURCES)
    assert answers[1] == ""
    assert notes == ""
    for source, answer in zip(SOURCES, answers, strict=True):
        assert predict(run, source.encode() + b"\n")[0] == [answer]


PARAGRAPHS = [
    "b b ü! a b c?  c b a",
    "",
    " no such words. Yes. 日 a a ",
    "a b c",
]


def test_paragraphs_are_answered_by_sentences(
    run, export, predict, refused, load
):
    sentences = [
        "b b ü!",
        "a b c?",
        "c b a",
        "no such words.",
        "Yes.",
        "日 a a",
    ]
    answers, _ = predict(run, lines_of([*sentences, "a b c"]))
    first = "{} {}  {}".format(*answers[:3])
    third = " {} {} {} ".format(*answers[3:6])
    joined, notes = predict(run, lines_of(PARAGRAPHS), "--paragraphs")
    assert joined == [first, "", third, answers[6]]
    assert notes == ""
    windows = lines_of(PARAGRAPHS).replace(b"\n", b"\r\n")
    assert predict(export, windows, "--paragraphs")[0] == joined
    signature = load(export).signatures["paragraphs"]
    text = [PARAGRAPHS[0] + "\n\n" + PARAGRAPHS[2], "", "a b c " * 600]
    found = signature(text=tf.constant(text))
    assert [each.decode() for each in found["text"].numpy()[:2]] == [
        f"{first}\n\n{third}",
        "",
    ]
    assert found["truncated"].numpy().tolist() == [False, False, True]
    _, notes = predict(run, text[2].encode(), "--paragraphs")
    assert "line 1" in notes.lower()
    rows, _ = predict(run, lines_of(PARAGRAPHS), "--paragraphs", "--scores")
    assert [row.split("\t")[1] for row in rows] == joined
    message = refused("predict", run, "--paragraphs", "--n-best", "2")
    assert "--paragraphs and --n-best are mutually exclusive" in message


def test_streamed_answers_are_the_same(run, export, predict, refused):
    for path in (run, export):
        expected, notes = predict(path, lines_of(PARAGRAPHS))
        found, same_notes = predict(path, lines_of(PARAGRAPHS), "--stream")
        assert (found, same_notes) == (expected, notes)
    _, notes = predict(run, b"a b c " * 600 + b"\nb", "--stream")
    assert notes == "line 1 is too long; its end was left out.\n"
    for options in (["--json"], ["--scores"], ["--paragraphs"], ["--mbr", "2"]):
        message = refused("predict", run, "--stream", *options)
        assert f"--stream and {options[0]} are mutually exclusive" in message
    for option in ("--n-best", "--batch-size"):
        message = refused("predict", run, "--stream", option, "2")
        assert f"--stream and {option} are mutually exclusive" in message


def test_lines_end_at_newlines_only(run, predict):
    text = "a\u2028b\r\nb\x85\x0b\x00c\n\ufeff\n\xa0".encode() + b"\xff\xfe"
    answers, _ = predict(run, text)
    assert len(answers) == 4
    assert predict(run, text.replace(b"\r", b""))[0] == answers
    assert predict(run, b"\xef\xbb\xbf" + text)[0] == answers


def test_scores_and_n_best_are_columns(run, predict):
    plain, _ = predict(run, lines_of(SOURCES))
    answers, _ = predict(run, lines_of(SOURCES), "--n-best", "2", "--scores")
    rows = [answer.split("\t") for answer in answers]
    assert [row[1] for row in rows] == plain
    for score, _, next_score, _ in (row for row in rows if len(row) == 4):
        assert float(score) >= float(next_score)
    assert rows[1] == ["0.0000", ""]  # a blank line has one answer
    answers, _ = predict(run, b"\n \t\n", "--n-best", "3")
    assert answers == ["", ""]
    (record, _), _ = predict(run, b"\n\n", "--n-best", "3", "--json")
    assert json.loads(record)["hypotheses"] == [{"text": "", "score": 0.0}]

    _, message = predict(run, b"a\n", "--n-best", "9", code=2)
    assert "needs a beam of at least that size" in message


def test_json_of_a_run_and_of_its_export(run, export, predict):
    options = ("--n-best", "3", "--json", "--attention")
    options += ("--word-probabilities",)
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

    for line, other in zip(answers, exported, strict=True):
        found = json.loads(line)
        assert " ".join(found["words"]) == " ".join(found["text"].split())
        probabilities = np.array(found["probabilities"])
        assert len(probabilities) == len(found["words"])
        assert (probabilities >= 0).all() and (probabilities <= 1).all()
        np.testing.assert_allclose(
            probabilities, json.loads(other)["probabilities"], atol=1e-4
        )

    (only,), _ = predict(run, b"a\n", "--json")
    assert json.loads(only).keys() == {"text", "score"}


def test_one_line_whatever_the_label(tmp_path, predict):
    label = tf.constant(["fire\nand\tflood\x1b\x85\u2028", "none"])
    module = tf.Module()
    module.answer = tf.function(
        lambda text: {
            "label": tf.repeat(label[:1], tf.size(text)),
            "probability": tf.ones(tf.shape(text)),
            "labels": tf.repeat(label[None], tf.size(text), axis=0),
            "probabilities": tf.repeat([[1.0, 0.0]], tf.size(text), axis=0),
            "truncated": tf.zeros(tf.shape(text), tf.bool),
        },
        input_signature=[tf.TensorSpec((None,), tf.string, "text")],
        autograph=False,
    )
    signatures = {"serving_default": module.answer}
    tf.saved_model.save(module, tmp_path, signatures=signatures)
    trust((tmp_path / "saved_model.pb").read_bytes())
    assert predict(tmp_path, b"a\nb\n")[0] == ["fire and\tflood   "] * 2
    assert (
        predict(tmp_path, b"a\nb\n", "--n-best=2", "--scores")[0]
        == ["1.0000\tfire and flood   \t0.0000\tnone"] * 2
    )
    (answer,), _ = predict(tmp_path, b"a\n", "--json")
    assert json.loads(answer)["label"] == "fire\nand\tflood\x1b\x85\u2028"
    assert answer.isprintable()


def test_a_line_of_two_megabytes_is_cut_and_reported(run, predict):
    text = b"a b\n" + b"a b c " * 350_000 + b"\nc\n"
    answers, notes = predict(run, text)
    assert len(answers) == 3
    assert notes == "line 2 is too long; its end was left out.\n"
    assert predict(run, b"c\n")[0] == answers[2:]


@pytest.mark.slow  # TensorFlow starts once more
def test_conversation_of_a_reader_who_leaves(run):
    """Answers do not wait for the end, and nothing needless is imported."""
    program = (
        "import sys; from kseq import cli\n"
        "code = cli.main(sys.argv[1:])\n"
        "not_needed = {'matplotlib', 'scipy', 'sklearn', 'sacrebleu',"
        " 'kseq.training', 'kseq.evaluation', 'kseq.pictures'}\n"
        "assert not not_needed & sys.modules.keys()\n"
        "sys.exit(code)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "predict", run, "--greedy"],
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


def test_control_c_is_130(run, monkeypatch, ctrl_c):
    read, write = os.pipe()
    with open(read) as file:
        monkeypatch.setattr(sys, "stdin", file)
        press = (threading.main_thread().ident, signal.SIGINT)
        threading.Timer(1, signal.pthread_kill, press).start()
        assert cli.main(["predict", str(run)]) == 130
    os.close(write)


@pytest.mark.slow  # a training of its own
def test_answers_are_a_corpus_to_train_on(run, call, here):
    """Back-translation: their pairs are one of two weighted corpora."""
    answers, _ = call("predict", run, text=lines_of(LEARNT * 4))
    for name in ("train.de", "train.en", "more.en"):
        (here / name).write_bytes(lines_of(LEARNT * 4))
    (here / "more.de").write_text(answers)
    assert len(answers.splitlines()) == len(LEARNT * 4)
    output, _ = call(
        *("train", "translate_transformer", "--run", "runs/new"),
        *("--train", "train.de", "train.en", "more.de", "more.en"),
        *("--weights", 1, 1, "--validation", "train.de", "train.en"),
        *("--vocab-size", 270, "--layers", 1, "--model-dim", 8),
        *("--ffn-dim", 8, "--heads", 2, "--steps", 2, "--averaged", 1),
    )
    assert "step 2/2" in output
    assert (here / "saved_models" / "new" / "1").is_dir()


@pytest.mark.parametrize(
    "options", [[], ["--scores"], ["--json", "--mbr", "2"]]
)
def test_words_are_for_json(run, refused, options):
    message = refused("predict", run, "--word-probabilities", *options)
    assert "--word-probabilities needs --json, and excludes --mbr." in message


@pytest.mark.parametrize("option", ["--paragraphs", "--stream"])
def test_words_are_of_whole_answers(run, refused, option):
    words = "--word-probabilities"
    message = refused("predict", run, "--json", words, option)
    assert f"{option} and --" in message
    assert "mutually exclusive" in message


def test_words_are_those_of_a_text(classifier_run, refused):
    options = ("--json", "--word-probabilities")
    message = refused("predict", classifier_run, *options)
    assert "is for a model that answers with a text" in message


MARKUP = (
    "<h1>b b <i>ü</i>!</h1>\n<p>a <b>b c</b>?  c {n} b <a href='?a&amp;b'>"
    "a</a></p>\n<script>a b</script>"
)


def test_tags_are_kept(run, export, predict, refused, tmp_path):
    plain = [" b b ü!", "", "a b c?  c b a "]
    texts, _ = predict(run, lines_of(plain), "--paragraphs")
    answers, notes = predict(run, MARKUP.encode(), "--markup")
    assert notes == ""
    answer = "\n".join(answers)
    assert predict(export, MARKUP.encode(), "--markup")[0] == answers
    tags = re.compile(r"<script>.*</script>|<[^<>]*>|\{n\}")
    assert sorted(tags.findall(answer)) == sorted(tags.findall(MARKUP))
    assert tags.sub("", answer).split() == " ".join(texts).split()
    _, notes = predict(run, b"<p>a\n\xfc</p>\n", "--markup")
    assert "1 line is not valid UTF-8" in notes
    long = "a b c " * 3000
    _, notes = predict(run, f"<p>{long}</p> <b>a</b>".encode(), "--markup")
    (note,) = notes.splitlines()
    assert "sentence is too long" in note and long[:60] in note
    assert predict(run, b"", "--markup")[0] == [""]
    assert predict(run, b" <p>\n", "--markup")[0] == [" <p>"]
    message = refused("predict", run, "--markup", "--n-best", "2")
    assert "--markup and --n-best are mutually exclusive" in message
    message = refused("predict", run, "--markup", "--sample")
    assert "--markup and --sample are mutually exclusive" in message


def test_markup_is_of_text(classifier_run, refused):
    message = refused("predict", classifier_run, "--markup")
    assert "--markup is for a model from text to text" in message
