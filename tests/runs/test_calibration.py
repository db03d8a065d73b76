import json
import os

import pytest
import tensorflow as tf

from kseq.runs import RunDirectory, RunError
from kseq.runs.calibration import read_temperature, write_temperature
from kseq.runs.checkpoint_files import checkpoint_paths, write_checkpoint


@pytest.fixture
def run(tmp_path):
    """Has the best weights of steps 4 and 8."""
    for step in (4, 8):
        folder = tmp_path / "checkpoints" / "best"
        write_checkpoint(folder, step, 2, value=tf.Variable(1.0))
    return RunDirectory(tmp_path)


def test_a_temperature_is_that_of_its_weights(run):
    older, newer = checkpoint_paths(run.checkpoints / "best")
    assert read_temperature(run, newer) == 1
    write_temperature(run, "best", 1.5)
    assert read_temperature(run, newer) == 1.5
    assert read_temperature(run, older) == 1
    assert read_temperature(run, newer.replace("best", "last")) == 1


def test_it_is_not_that_of_broken_weights(run):
    older, newer = checkpoint_paths(run.checkpoints / "best")
    os.truncate(f"{newer}.index", 0)
    write_temperature(run, "best", 1.5)
    assert read_temperature(run, older) == 1.5
    assert read_temperature(run, newer) == 1


def test_weights_of_which_none_is_intact(run):
    for path in checkpoint_paths(run.checkpoints / "best"):
        os.truncate(f"{path}.index", 0)
    for expected in ("", " Intact: 'last' of step 8."):
        message = rf"has no intact checkpoint 'best'\.{expected}$"
        with pytest.raises(RunError, match=message):
            write_temperature(run, "best", 1.5)
        assert not run.calibration.exists()
        folder = run.checkpoints / "last"
        write_checkpoint(folder, 8, 1, value=tf.Variable(1.0))


@pytest.mark.parametrize(
    "temperature", ["nan", "Infinity", "0", "-1", '"1"', "true", "null", "[]"]
)
def test_a_broken_file(run, temperature):
    temperature = temperature.replace("nan", "NaN")
    run.calibration.write_text(f'{{"temperature": {temperature}}}')
    with pytest.raises(RunError, match=r"calibration.json is broken: temp"):
        read_temperature(run, "best/ckpt-4")


@pytest.mark.parametrize("content", ["", "[1]", json.dumps({"checkpoint": 1})])
def test_another_file(run, content):
    run.calibration.write_text(content)
    with pytest.raises(ValueError, match=r"calibration\.json is broken"):
        read_temperature(run, "best/ckpt-4")
