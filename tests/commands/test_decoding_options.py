"""A glossary, minimum Bayes risk, groups and the coverage penalty."""

import json
import math
import re
import shutil

import numpy as np
import pytest

from kseq.commands.glossary import Glossary
from kseq.data import DataError
from kseq.evaluation import expected_chrf
from kseq.runs import RunDirectory
from kseq.serving.answer import Answer, Hypothesis
from tests.commands.some_lines import LEARNT, SOURCES, lines_of


@pytest.fixture
def glossary_file(tmp_path):
    """Writes a glossary; gives its path."""

    def write(text):
        path = tmp_path / "glossary.tsv"
        path.write_text(text, "utf-8")
        return path

    return write


def test_answers_have_the_words_of_a_glossary(run, predict, glossary_file):
    path = glossary_file("a\tb a\n\nc\tc\t!\n\tzz\t!\n")
    answers, notes = predict(run, lines_of(SOURCES), "--glossary", path)
    assert notes == ""
    assert len(answers) == len(SOURCES)
    for source, answer in zip(SOURCES, answers, strict=True):
        words = source.split()
        assert "a" not in words or re.search(r"\bb a\b", answer)
        assert "c" not in words or "c" not in answer.split()


@pytest.mark.parametrize("options", [(), ("--n-best", "2"), ("--mbr", "2")])
def test_a_glossary_that_no_answer_fits(run, predict, glossary_file, options):
    path = glossary_file("b\tb a b\nb\tb a\t!\n\tc\t!\n")
    lines = b"a\n\na b\n"
    rows, notes = predict(run, lines, "--glossary", path, "--json", *options)
    assert notes == "line 3: no answer satisfies the glossary.\n"
    answers = [json.loads(row, parse_constant=pytest.fail) for row in rows]
    assert answers[1]["score"] == 0
    assert (answers[2]["text"], answers[2]["score"]) == ("", None)


@pytest.mark.parametrize(
    ("text", "score", "fits"),
    [
        ("a dog", -1.0, True),
        ("dogs", -1.0, False),
        ("a dog, a kitty", -1.0, False),
        ("a dog", -math.inf, False),
        ("", 0.0, True),
    ],
)
def test_which_answers_fit(glossary_file, text, score, fits):
    """Also those that were too short for the phrases, or were cut."""
    glossary = Glossary(glossary_file("\tdog\nHund\tkitty\t!\n"))
    answer = Answer([Hypothesis(text, score)], False, {})
    assert glossary.fits(b"Hund", answer) == fits


def test_which_rows_matter_for_a_line(glossary_file):
    path = glossary_file(
        "Hund\tdog\n"
        "Katze\tkitty\t!\n"
        "Katze\tcat\n"
        "Fritz\t\n"
        "\tdamn\t!\n"
        "日本\tJapan\n"
        "Hund\tdog\n"
    )
    glossary = Glossary(path)
    phrases = glossary.phrases(b"Der Hund, die Katze")
    assert phrases == (["dog", "cat"], ["kitty", "damn"])
    assert glossary.phrases(b"Hunde") == ([], ["damn"])
    assert glossary.phrases(b"(Hund_Halb-Katze)")[0] == ["dog", "cat"]
    assert glossary.phrases("Hund\u0301".encode()) == ([], ["damn"])
    assert glossary.phrases("Fritz in 日本人".encode()) == (
        ["Japan"],
        ["Fritz", "damn"],
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hund\n", "1: expected a phrase"),
        ("Hund\tdog\n\nHund\tdog\t?\n", "3: expected a phrase"),
        ("Hund\tdog\t!\tx\n", "1: expected a phrase"),
        ("\t\t!\n", "1: both phrases are empty"),
        ("", "is empty"),
    ],
)
def test_rows_that_are_wrong(glossary_file, text, message):
    with pytest.raises(DataError, match=message):
        Glossary(glossary_file(text))


def test_minimum_bayes_risk(run, predict):
    lines = lines_of(SOURCES)
    rows, notes = predict(run, lines, "--mbr", "5", "--json", "--n-best", "2")
    assert notes == ""
    beams, _ = predict(
        run, lines, "--beam-size", "5", "--json", "--n-best", "5"
    )
    for row, beam in zip(rows, beams, strict=True):
        found, candidates = json.loads(row), json.loads(beam)
        texts = [each["text"] for each in candidates["hypotheses"]]
        scores = expected_chrf(texts)
        assert found["text"] == texts[int(np.argmax(scores))]
        assert found["expected_chrf"] == round(max(scores), 4)
        assert len(found["hypotheses"]) == min(2, len(set(texts)))


def test_minimum_bayes_risk_of_samples(run, predict):
    options = ("--mbr", "8", "--sample", "--seed", "1")
    answers, notes = predict(run, lines_of(LEARNT), *options)
    assert notes == ""
    assert answers == list(LEARNT)


def test_groups_give_more_different_answers(run, predict):
    lines = lines_of(LEARNT)
    options = ("--beam-size", "4", "--n-best", "4", "--groups", "4")
    rows, notes = predict(run, lines, *options, "--diversity", "100")
    assert notes == ""
    for row, line in zip(rows, LEARNT, strict=True):
        texts = row.split("\t")
        assert texts[0] == line
        assert len({text[:1] for text in texts}) > 1


def test_the_coverage_penalty_counts_in_scores_too(run, call, tmp_path):
    """A run of this search: an export would have to be traced, as well."""
    covered = RunDirectory(shutil.copytree(run, tmp_path / "covered"))
    task = covered.read_task()
    task["search"]["coverage_penalty"] = 0.3
    covered.task.write_text(json.dumps(task))
    lines = lines_of(LEARNT)
    found, _ = call("predict", covered.path, "--scores", text=lines)
    rows = [row.split("\t") for row in found.splitlines()]
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(lines)
    target.write_text("".join(f"{text}\n" for _, text in rows))
    scores, _ = call("score", covered.path, source, target)
    scores = np.array(scores.split(), float)
    np.testing.assert_allclose(
        scores, [float(score) for score, _ in rows], atol=2e-3
    )
    plain, _ = call("score", run, source, target)
    assert np.abs(np.array(plain.split(), float) - scores).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--glossary", "FILE", "--greedy"], "--glossary needs a beam search"),
        (["--glossary", "FILE", "--sample"], "--glossary needs a beam search"),
        (["--glossary", "FILE", "--beam-size", "1"], "beam of two or more"),
        (["--glossary", "FILE", "--prefix", "FILE"], "mutually exclusive"),
        (["--glossary", "FILE", "--attention", "--json"], "not shown with"),
        (["--mbr", "4", "--attention", "--json"], "not shown with --mbr"),
        (["--mbr", "4", "--greedy"], "--mbr 4 needs a beam"),
        (["--mbr", "1"], "--mbr needs two candidates or more"),
        (["--mbr", "4", "--n-best", "5"], "more than the 4 candidates"),
        (["--mbr", "4", "--beam-size", "3"], "--mbr 4 needs a beam"),
        (["--groups", "2", "--greedy"], "--groups needs a beam search"),
        (["--groups", "2", "--beam-size", "5"], "multiple of num_groups"),
        (["--diversity", "0.5"], "--diversity needs --groups"),
        (["--coverage-penalty", "1", "--sample"], "needs a beam search"),
        (["--coverage-penalty", "1", "--beam-size", "1"], "two or more"),
        (["--coverage-penalty", "1e9"], "coverage_penalty"),
    ],
)
def test_options_that_cannot_be(run, predict, glossary_file, options, message):
    path = str(glossary_file("a\tb\n"))
    options = [path if option == "FILE" else option for option in options]
    _, notes = predict(run, b"a b\n", *options, code=2)
    assert message in notes
    assert notes.count("\n") == 1


def test_a_glossary_is_for_a_run(export, predict, glossary_file):
    path = glossary_file("a\tb\n")
    _, notes = predict(export, b"a\n", "--glossary", path, code=2)
    assert "--glossary is for a run" in notes
