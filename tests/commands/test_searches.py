"""The options that choose a search, and prefixes of answers."""

import re

import pytest

from tests.commands.some_lines import LEARNT, SOURCES, lines_of
from tests.slow import slow

SAMPLE = (
    *("--sample", "--temperature", "3", "--top-k", "50"),
    *("--top-p", "0.9", "--seed"),
)


@pytest.mark.slow  # of the searches themselves, tests/decoding shows it
def test_greedy_search_is_a_beam_of_one(run, predict):
    answers = predict(run, lines_of(SOURCES), "--greedy", "--scores")
    one = predict(run, lines_of(SOURCES), "--beam-size", "1", "--scores")
    assert answers == one


@pytest.mark.slow  # tests/decoding shows it
def test_the_seed_decides_what_is_drawn(run, predict):
    lines = lines_of(SOURCES * 5)
    answers, notes = predict(run, lines, *SAMPLE, "1")
    assert len(answers) == 5 * len(SOURCES)
    assert notes == ""
    assert predict(run, lines, *SAMPLE, "1")[0] == answers
    assert predict(run, lines, *SAMPLE, "2")[0] != answers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--greedy", "--sample"], "mutually exclusive"),
        (["--temperature", "0.8"], "--temperature needs --sample"),
        (["--top-k", "5"], "--top-k needs --sample"),
        (["--top-p", "0.5"], "--top-p needs --sample"),
        (["--seed", "0"], "--seed needs --sample"),
        (["--greedy", "--seed", "1"], "--seed needs --sample"),
        (["--sample", "--beam-size", "2"], "--beam-size needs a beam search"),
        (["--greedy", "--beam-size", "2"], "--beam-size needs a beam search"),
        (["--greedy", "--patience", "2"], "--patience needs a beam search"),
    ],
)
def test_options_that_contradict_each_other(run, refused, options, message):
    for command in ("predict", "export"):
        assert message in refused(command, run, *options)


@pytest.mark.parametrize(
    ("option", "values"),
    {
        "--beam-size": ["0", "-1", "10001", "1" + "0" * 30, "1.5", "nan", ""],
        "--coverage-penalty": ["-1", "nan", "inf", "1e30", "", "x"],
        "--groups": ["0", "-1", "1.5", "nan", "1" + "0" * 30, ""],
        "--diversity": ["-1", "nan", "inf", "1e30", "", "x"],
        "--mbr": ["0", "-1", "1.5", "nan", "inf", ""],
        "--glossary": ["", "/", "no-such-file"],
        "--n-best": ["0", "-1", "1.5", "nan", "inf", ""],
        "--batch-size": ["0", "-1", "1.5", "nan", "inf", ""],
        "--length-penalty": ["-1", "nan", "inf", "1e30", "", "x"],
        "--temperature": ["0", "-1", "nan", "inf", "1e30", "", "x"],
        "--top-k": ["-1", "1.5", "nan", "inf", "1" + "0" * 30, ""],
        "--top-p": ["0", "-1", "1.5", "nan", "inf", ""],
        "--seed": ["-1", "1.5", "nan", "inf", "1" + "0" * 30, ""],
        "--weights": ["", "newest"],
        "--prefix": ["", "/", "no-such-file"],
    }.items(),
)
def test_absurd_values(run, refused, option, values):
    needed = ()
    if option in ("--temperature", "--top-k", "--top-p", "--seed"):
        needed = ("--sample",)
    if option == "--diversity":
        needed = ("--groups=3",)
    for value in values:
        message = refused("predict", run, *needed, f"{option}={value}")
        assert message.count("\n") == 1
        name = option.removeprefix("--").replace("-", "[-_]")
        assert re.search(name, message), message


def test_huge_values_that_mean_all(run, predict, refused):
    plain, _ = predict(run, lines_of(SOURCES))
    huge = str(2**31 - 1)
    assert predict(run, lines_of(SOURCES), "--batch-size", huge)[0] == plain
    message = predict(run, b"a\n", "--n-best", huge, code=2)[1]
    assert "needs a beam" in message
    assert "at least 1" in refused("average", run, "--last", "0")


# Prefixes.

PREFIXES = ["c b", "b", "", "a b c", " \t"]


@pytest.fixture
def prefix_file(tmp_path):
    """Writes prefixes into a file; gives its path."""

    def write(prefixes):
        (tmp_path / "prefixes").write_bytes(lines_of(prefixes))
        return str(tmp_path / "prefixes")

    return write


@pytest.mark.parametrize("kind", [slow("run"), "export"])
def test_each_answer_begins_with_its_prefix(
    request, kind, predict, prefix_file
):
    path = request.getfixturevalue(kind)
    options = ("--prefix", prefix_file(PREFIXES))
    answers, notes = predict(path, lines_of(SOURCES), *options)
    assert notes == ""
    assert len(answers) == len(SOURCES)
    for source, prefix, answer in zip(SOURCES, PREFIXES, answers, strict=True):
        assert answer.startswith(prefix.strip()) or not source
    assert answers[1] == ""
    plain, _ = predict(path, lines_of(SOURCES))
    for free in (2, 4):
        assert answers[free] == plain[free]

    n_best, _ = predict(path, lines_of(SOURCES), *options, "--n-best", "3")
    for prefix, row, best in zip(PREFIXES, n_best, answers, strict=True):
        hypotheses = row.split("\t")
        assert hypotheses[0] == best
        assert all(h.startswith(prefix.strip()) for h in hypotheses) or not best


@pytest.mark.slow  # tests/decoding shows it
def test_a_prefix_that_the_model_would_write_changes_no_score(
    run, predict, prefix_file
):
    path = prefix_file([answer[:3] for answer in LEARNT])
    answers = predict(run, lines_of(LEARNT), "--scores", "--prefix", path)
    assert answers == predict(run, lines_of(LEARNT), "--scores")


def test_prefixes_of_many_chunks(run, predict, prefix_file):
    count = 40  # of 16 lines
    sources = [LEARNT[i % 5] for i in range(count)]
    prefixes = [LEARNT[i * i % 5] for i in range(count)]
    options = ("--prefix", prefix_file(prefixes), "--batch-size=1")
    answers, _ = predict(run, lines_of(sources), *options)
    for prefix, answer in zip(prefixes, answers, strict=True):
        assert answer.startswith(prefix)


@pytest.mark.parametrize(
    ("count", "message"),
    [(1, "fewer lines than the input"), (3, "more lines than the 2 of")],
)
def test_a_prefix_for_each_line(run, predict, prefix_file, count, message):
    options = ("--prefix", prefix_file(["a"] * count))
    _, notes = predict(run, b"a\nb\n", *options, code=2)
    assert notes.startswith("kseq predict: ")
    assert message in notes
    assert notes.count("\n") == 1


def test_attention_is_not_that_of_another_answer(run, predict, prefix_file):
    options = ("--json", "--attention", "--prefix", prefix_file(["a"]))
    _, notes = predict(run, b"a\n", *options, code=2)
    assert "not shown with --prefix" in notes
