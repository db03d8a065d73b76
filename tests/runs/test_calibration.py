import json

import pytest

from kseq.runs import RunDirectory, RunError
from kseq.runs.calibration import read_temperature, write_temperature


@pytest.fixture
def run(tmp_path):
    """Has the best weights of step 4, and the last ones of step 6."""
    for name, step in (("best", 4), ("last", 6)):
        folder = tmp_path / "checkpoints" / name
        folder.mkdir(parents=True)
        (folder / f"ckpt-{step}.sha256").write_text("")
    return RunDirectory(tmp_path)


def test_a_temperature_is_that_of_its_weights(run):
    assert read_temperature(run, "best") == 1
    write_temperature(run, "best", 1.5)
    assert read_temperature(run, "best") == 1.5
    assert read_temperature(run, "last") == 1
    assert read_temperature(run, "average") == 1
    (run.checkpoints / "best" / "ckpt-8.sha256").write_text("")
    assert read_temperature(run, "best") == 1


@pytest.mark.parametrize(
    "temperature", ["nan", "Infinity", "0", "-1", '"1"', "true", "null", "[]"]
)
def test_a_broken_file(run, temperature):
    temperature = temperature.replace("nan", "NaN")
    run.calibration.write_text(f'{{"temperature": {temperature}}}')
    with pytest.raises(RunError, match=r"calibration.json is broken: temp"):
        read_temperature(run, "best")


@pytest.mark.parametrize("content", ["", "[1]", json.dumps({"checkpoint": 1})])
def test_another_file(run, content):
    run.calibration.write_text(content)
    with pytest.raises(ValueError, match=r"calibration\.json is broken"):
        read_temperature(run, "best")
