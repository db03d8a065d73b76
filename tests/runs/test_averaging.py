import shutil

import numpy as np
import pytest
import tensorflow as tf

from kseq.loading import load_model
from kseq.runs import (
    RunDirectory,
    RunError,
    average_checkpoints,
    averaging,
    save_average,
)
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_checkpoint,
    write_checkpoint,
)
from tests.training.tiny_training import make_model, train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained")
    train(path, epochs=3)
    return path


@pytest.fixture
def run(trained, tmp_path):
    return RunDirectory(shutil.copytree(trained, tmp_path / "run"))


def weights_of(path):
    return [v.numpy() for v in numbered(read_checkpoint(path), "vars")]


def test_the_mean_of_weights_and_the_newest_seed(run):
    paths = checkpoint_paths(run.checkpoints / "last")
    states = [weights_of(path) for path in paths]
    variables = make_model().variables
    for index, value in enumerate(average_checkpoints(paths)):
        values = np.stack([state[index] for state in states])
        expected = values[-1]
        if variables[index].trainable:
            expected = values.mean(axis=0)
        assert value.dtype == values.dtype
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_the_average_is_saved_as_weights_of_the_run(run):
    paths = save_average(run, last=2)
    assert [path[-7:] for path in paths] == ["ckpt-10", "ckpt-15"]
    averaged = load_model(run, weights="average")
    for a, b in zip(
        averaged.variables, average_checkpoints(paths), strict=True
    ):
        np.testing.assert_array_equal(a.numpy(), b)


def test_fewer_checkpoints_than_asked_for_are_enough(run):
    assert len(save_average(run, last=10)) == 3


def test_the_best_ones_are_averaged(run):
    """By their scores, in the order of their steps; in place of later ones."""
    save_average(run, last=3)
    folder = run.checkpoints / "top"
    for step, score in ((5, 1.0), (10, 3.0), (15, 0.5), (20, 1.0)):
        values = {"vars": [tf.Variable(float(step))]}
        write_checkpoint(folder, step, 9, score=tf.Variable(score), **values)
    assert [path[-6:] for path in save_average(run, best=2)] == [
        "ckpt-5",
        "kpt-10",
    ]
    [path] = checkpoint_paths(run.checkpoints / "average")
    assert path.endswith("ckpt-10")
    assert weights_of(path) == [7.5]


def test_a_run_that_kept_no_best_ones(run):
    with pytest.raises(RunError, match="no best checkpoints to average"):
        save_average(run, best=2)
    write_checkpoint(run.checkpoints / "top", 5, 1, vars=[tf.Variable(1.0)])
    with pytest.raises(RunError, match="ckpt-5 has no score"):
        save_average(run, best=2)


def test_those_that_training_deletes_meanwhile_are_replaced(run, monkeypatch):
    read, saves = averaging.read_checkpoint, iter([20])
    folder = run.checkpoints / "last"

    def read_after_a_save(path, *names):
        for step in saves:
            values = [v.value for v in make_model().variables]
            write_checkpoint(folder, step, 2, vars=values)
        return read(path, *names)

    monkeypatch.setattr(averaging, "read_checkpoint", read_after_a_save)
    assert [path[-7:] for path in save_average(run, last=3)] == [
        "ckpt-15",
        "ckpt-20",
    ]


def test_a_broken_one_is_refused(run):
    (run.checkpoints / "last" / "ckpt-10.index").unlink()
    with pytest.raises(RunError, match="ckpt-10 is broken"):
        save_average(run, last=3)


@pytest.mark.parametrize(
    ("which", "count"),
    [
        *(("last", count) for count in (0, -1, True, 2.0, None)),
        *(("best", count) for count in (0, -1, True, 2.0)),
    ],
)
def test_at_least_one_is_averaged(run, which, count):
    with pytest.raises(ValueError, match=f"Received: {which}={count}"):
        save_average(run, **{which: count})
    assert not (run.checkpoints / "average").exists()


def test_other_weights_are_not_averaged(run):
    for step, values in ((20, [tf.zeros(3)]), (25, [tf.zeros(2)])):
        write_checkpoint(
            run.checkpoints / "last", step, 9, vars=[*map(tf.Variable, values)]
        )
        with pytest.raises(
            RunError, match=f"ckpt-{step} and .* different shapes"
        ):
            save_average(run, last=2)


def test_a_run_without_checkpoints_is_refused(tmp_path):
    with pytest.raises(RunError, match="no checkpoints to average"):
        save_average(RunDirectory(tmp_path))


def test_only_what_is_needed_is_read_into_memory(run, monkeypatch):
    """The state of an optimizer is twice as large as the weights."""
    read, restore = set(), tf.raw_ops.RestoreV2

    def recorded(**options):
        read.update(options["tensor_names"])
        return restore(**options)

    monkeypatch.setattr(tf.raw_ops, "RestoreV2", recorded)
    save_average(run)
    load_model(run, weights="last")
    assert {name.partition("/")[0] for name in read} == {"vars"}
