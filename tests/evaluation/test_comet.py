import sys

import pytest

from kseq.evaluation import Comet, Comparison, Translations, metrics_named
from kseq.evaluation.line_statistics import line_statistics
from kseq.evaluation.resampling import with_intervals
from kseq.user_error import UserError

# Scores a line by its source, and counts how often it is called.
PROGRAM = f"""#!{sys.executable}
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--to_json")
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--only_system", action="store_true")
for option in "str":
    parser.add_argument("-" + option, type=open)
options = parser.parse_args()
with open(os.environ["CALLS"], "a") as calls:
    calls.write(options.model + "\\n")
files = options.s, options.t, options.r
columns = [file.read().splitlines() for file in files]
rows = [
    {{"src": s, "mt": t, "ref": r, "COMET": 0.5 * (s in t) + 0.25 * (r == t)}}
    for s, t, r in zip(*columns, strict=True)
]
with open(options.to_json, "w") as file:
    json.dump({{options.t.name: rows}}, file)
"""
SOURCES = ["a", "b", "c"]
OUTPUTS = ["a\nx", "b", ""]
REFERENCES = [["a x", "none"], ["y"], [" "]]
VALUES = [75, 50, 25]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Writes `comet-score`; gives its file and that of its calls."""
    path, calls = tmp_path / "comet-score", tmp_path / "calls"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CALLS", str(calls))
    monkeypatch.setenv("COMET_MODEL", str(tmp_path / "own.ckpt"))
    return path, calls


def test_score_of_lines_and_of_all(program, tmp_path):
    metric = Comet(SOURCES)
    assert list(metric.of_lines(OUTPUTS, REFERENCES)) == VALUES
    score = metric(OUTPUTS, REFERENCES)
    how = f"refs:first|model:{tmp_path / 'own.ckpt'}"
    assert score == (50, f"COMET 50.00  {how}")
    found = line_statistics(metric, OUTPUTS, REFERENCES)
    assert found.total() == 50
    assert found.total([0]) == 75
    [text] = with_intervals([score], [metric], OUTPUTS, REFERENCES)
    assert text.startswith("COMET 50.00 ± ")
    assert text.endswith(how)
    # The same texts are computed once.
    assert program[1].read_text() == f"{tmp_path / 'own.ckpt'}\n"


def test_two_systems(program):
    metrics = metrics_named(["chrf", "comet"])
    outputs = [[*"xyz"], SOURCES]
    compared = Comparison(SOURCES, [*"def"], outputs, metrics)
    assert compared.scores[1].values == (0, 50)
    assert compared.scores[1].label == "COMET"


def test_an_evaluation_binds_its_sources(program):
    class Predictor:
        signatures = ()

        def answers(self, inputs, progress=None):
            hypothesis = type("Hypothesis", (), {"text": "a"})
            return [type("Answer", (), {"hypotheses": [hypothesis]})] * 3

    pairs = list(zip(SOURCES, REFERENCES, strict=True))
    metrics = metrics_named(["comet"])
    found = Translations(Predictor(), pairs, metrics)
    assert found.scores() == {"comet": pytest.approx(50 / 3)}
    with pytest.raises(UserError, match="comet reads source texts"):
        Translations(Predictor(), pairs, metrics, inputs=[1, 2, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!/bin/sh\necho no such model >&2\nexit 1\n", "no such model"),
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
        (
            "#!/bin/sh\nwhile [ $1 != --to_json ]; do shift; done\n"
            "echo '{\"t\": [{}]}' > $2\n",
            "exit code 0",
        ),
        (
            "#!/bin/sh\nwhile [ $1 != --to_json ]; do shift; done\n"
            'echo \'{"t": [{"COMET": 1}]}\' > $2\n',
            "exit code 0",
        ),
        (
            "#!/bin/sh\nwhile [ $1 != --to_json ]; do shift; done\n"
            'echo \'{"t": [{"COMET": NaN}, {"COMET": 0}, {"COMET": 1e999}]}\''
            " > $2\n",
            "exit code 0",
        ),
    ],
)
def test_a_program_that_fails(program, text, message):
    program[0].write_text(text)
    with pytest.raises(UserError, match=f"comet-score .* failed: {message}"):
        Comet(SOURCES)(OUTPUTS, ["1", "2", "3"])


def test_a_name_with_control_characters(program, monkeypatch):
    monkeypatch.setenv("COMET_MODEL", "a\n\x1b[31m")
    assert Comet(SOURCES).signature.endswith(r"model:a\n\x1b[31m")


def test_without_the_program(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="pipx install unbabel-comet"):
        metrics_named(["comet"])
    with pytest.raises(ValueError, match="Expected source texts"):
        Comet()(OUTPUTS, REFERENCES)
    with pytest.raises(ValueError, match="one output for each reference"):
        Comet(SOURCES[:2])(OUTPUTS, REFERENCES)
