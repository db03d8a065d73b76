"""Answers in pipelines of Apache Beam."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kseq.user_error import UserError

beam = pytest.importorskip("apache_beam", reason="needs the extra beam")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "beam.md"
LINES = [
    *("the cat sat on the mat", "", "a dog ate 12 bones", "日本 テスト", "\t"),
    *("a\u2028b", "bad utf-8 \udcff\udce4", "cat " * 200, "cr\r"),
]


@pytest.fixture(scope="module")
def path(exports):
    return exports["lstm"]


def test_a_broken_element_does_not_lose_its_batch(path, loaded_exports):
    from apache_beam.testing.util import assert_that

    from kseq.loading import PredictLines

    texts = ["the cat", "12 bones", "日本", ""]
    elements = [
        texts[0],
        None,
        {"index": 7, "text": texts[1]},
        {"index": 8, "line": "the dog"},
        {"text": ["two", "texts"]},
        {"text": texts[2].encode(), "of": "me"},
        5,
        {},
        texts[3],
    ]
    kept = [{}, {"index": 7}, {"of": "me"}, {}]
    answers = loaded_exports["lstm"].answers(texts)
    expected = [
        {**entries, **answer.record}
        for entries, answer in zip(kept, answers, strict=True)
    ]
    refused = [elements[i] for i in (1, 3, 4, 6, 7)]

    def check_answers(found):
        assert len(found) == len(expected)
        for answer in expected:
            score = pytest.approx(answer["score"], abs=1e-4)
            assert {**answer, "score": score} in found

    def check_broken(found):
        assert len(found) == len(refused)
        assert all(each["input"] in refused and each["error"] for each in found)
        errors = {str(each["input"]): each["error"] for each in found}
        assert "'text'; found index, line" in errors[str(elements[3])]

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        found, broken = (
            pipeline | beam.Create(elements) | PredictLines(path.parent)
        )
        assert_that(found, check_answers, label="answers")
        assert_that(broken, check_broken, label="broken")


def test_a_path_that_is_no_export_is_refused_when_the_pipeline_is_made(
    tmp_path,
):
    from kseq.loading import PredictLines

    with pytest.raises(UserError, match="nothing"):
        PredictLines(tmp_path / "nothing")


def test_kseq_imports_no_beam():
    code = "import sys, kseq.loading.load_export; assert 'apache_beam' not in "
    subprocess.run([sys.executable, "-c", code + "sys.modules"], check=True)


@pytest.mark.slow  # Beam and TensorFlow start in three processes
def test_the_script_answers_like_predict_in_two_processes(path, tmp_path):
    [code] = re.findall("```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (tmp_path / "predict_lines.py").write_text(code)
    lines = [line.encode("utf-8", "surrogateescape") for line in LINES * 20]
    (tmp_path / "lines").write_bytes(b"\n".join(lines))
    script = [sys.executable, tmp_path / "predict_lines.py", path]
    options = ["--runner", "FnApiRunner", "--direct_num_workers", "2"]
    options += ["--direct_running_mode", "multi_processing"]
    subprocess.run(
        [*script, "lines", "answers", *options], cwd=tmp_path, check=True
    )
    answers = [
        json.loads(line)
        for part in tmp_path.glob("answers-*-of-*")
        for line in part.read_text("utf-8").split("\n")[:-1]
    ]
    answers.sort(key=lambda answer: answer.pop("index"))
    command = [sys.executable, "-m", "kseq", "predict", path, "--json"]
    with open(tmp_path / "lines", "rb") as file:
        printed = subprocess.run(
            command, stdin=file, capture_output=True, cwd=ROOT, check=True
        ).stdout.decode()
    expected = list(map(json.loads, printed.split("\n")[:-1]))
    assert len(answers) == len(lines)
    for answer, other in zip(answers, expected, strict=True):
        assert answer.pop("score") == pytest.approx(
            other.pop("score"), abs=1e-4
        )
        assert answer == other
