import json
import os
import re
import sys

import pytest

from kseq import cli
from tests.commands.some_lines import LEARNT, lines_of

LINES = [*LEARNT[:4], "no such words"] * 10


@pytest.fixture
def files(tmp_path):
    """Fifty sources and references, of which four of five were learnt."""
    both = tmp_path / "source", tmp_path / "reference"
    for path in both:
        path.write_bytes(lines_of(LINES))
    return both


@pytest.fixture
def answers(tmp_path):
    """A file with right answers to half of them."""
    path = tmp_path / "answers.txt"
    path.write_bytes(lines_of(["a b c <script>", *LINES[1:25], *["x"] * 25]))
    return path


def test_the_page_is_written_whoever_reads_the_report(
    files, answers, tmp_path, monkeypatch
):
    page = tmp_path / "page.html"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        arguments = ["compare", answers, answers, *files, "--page", page]
        assert cli.main(list(map(str, arguments))) == 0
        monkeypatch.undo()
    assert page.stat().st_size > 1000


def test_a_run_and_a_file_of_answers(run, files, answers, tmp_path, call):
    page = tmp_path / "page.html"
    output, _ = call("compare", answers, run, *files, "--page", page)
    first, second, size, *_ = output.splitlines()
    assert first == f"A: {answers}"
    assert second == f"B: {run}"
    assert size == "50 examples"
    evaluated, _ = call("evaluate", run, *files)
    for name, line in zip(
        ("chrF", "exact match"), evaluated.splitlines()[1:], strict=True
    ):
        [_, value] = re.findall(
            r"[\d.]+ ± [\d.]+", output.split(f"\n{name} ")[1]
        )[:2]
        assert line.startswith(f"{name} {value}")
    assert "\nB is better in exact match: significant at 0.05" in output
    assert output.count(": B is better\n") == 3
    html = page.read_text("utf-8")
    assert "<script" not in html and "&lt;script&gt;" in html
    assert html.count(">Attention of B<") == html.count("<article") > 20
    assert ">Attention of A<" not in html
    repeated, _ = call("compare", answers, run, *files)
    assert repeated == output


def test_json_of_two_files(files, answers, tmp_path, call):
    right = tmp_path / "right.txt"
    right.write_bytes(lines_of(LINES))
    metrics = ("--show", 2, "--metrics", "wer", "bleu_char")
    output, _ = call("compare", right, answers, *files, "--json", *metrics)
    found = json.loads(output)
    assert found["examples"] == 50
    wer, bleu = found["scores"]
    assert (wer["metric"], bleu["metric"]) == ("wer", "bleu_char")
    assert wer["values"][0] == 0 < wer["interval"][0] < wer["interval"][1]
    assert [line["place"] for line in found["losses"]] == [25, 26]
    assert found["gains"] == []
    table = tmp_path / "table.tsv"
    rows = [f"{number}\t{line}" for number, line in enumerate(LINES)]
    table.write_bytes(lines_of(rows))
    answers.write_bytes(answers.read_bytes().replace(b"x", b"\xff", 1))
    again, notes = call("compare", right, answers, table, "--json", *metrics)
    assert json.loads(again)["scores"] == found["scores"]
    assert f"{answers}: 1 line is not valid UTF-8" in notes


def test_a_run_and_itself(run, files, call):
    output, _ = call("compare", run, run, *files)
    assert "No difference is significant at 0.05 by both tests." in output
    assert "equal at 50." in output
    assert "Line " not in output


def test_what_cannot_be_compared(
    run, classifier_run, files, answers, tmp_path, refused
):
    assert refused("compare", classifier_run, run, *files) == (
        f"kseq compare: {classifier_run} has no answers with references: "
        "compare is for models that answer with a text, and for files of "
        "answers.\n"
    )
    short = tmp_path / "short"
    short.write_text("one\ntwo\n")
    message = refused("compare", answers, short, *files)
    assert f"{short} has 2 answers, for 50 examples." in message
    empty = tmp_path / "empty"
    empty.touch()
    assert f"{empty} is empty" in refused("compare", answers, empty, *files)
    message = refused(
        "compare", answers, run, *files, "--metrics", "distinct_1"
    )
    assert "distinct_1: it depends on all lines" in message
    for page, expected in (
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "page.html", "there is no folder"),
        (os.devnull, "is a pipe or a device"),
        ("hf://me/page", "nothing is written to URLs"),
        (files[0], "one of the files to compare"),
        (answers, "one of the files to compare"),
    ):
        message = refused("compare", answers, answers, *files, "--page", page)
        assert expected in message
    message = refused("compare", answers, tmp_path / "none", *files)
    assert "is neither a run directory nor an export" in message
    message = refused("compare", answers, os.devnull, *files)
    assert "is a pipe or a device; write it to a file first" in message
    assert "at least 0" in refused("compare", run, run, *files, "--show", "-1")
    table = tmp_path / "table.tsv"
    table.write_bytes(lines_of(["a\tb"] * 3))
    message = refused("compare", short, short, table)
    assert "2 answers, for 1 examples: rows of a table with the" in message
    message = refused("compare", answers, answers, answers)
    assert "needs SOURCE and REFERENCE" in message
    message = refused("compare", run, answers, *files, "--images", tmp_path)
    assert "--images is not for this model" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "3"], "--batch-size is for a model; A and B are"),
        (["--audio", "."], "--audio is for a model"),
        (["--allow-op", "Foo"], "--allow-op is for an export"),
    ],
)
def test_options_of_models_are_not_for_files(
    refused, tmp_path, options, message
):
    file = tmp_path / "answers"
    file.write_text("a\nb\n")
    assert message in refused("compare", *[file] * 4, *options)
