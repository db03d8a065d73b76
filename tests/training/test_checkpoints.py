import contextlib
import hashlib
import io
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.data.files.stream_positions import numbered_batches
from kseq.files.atomic_write import flush
from kseq.loading import load_model
from kseq.process import stop_in_order
from kseq.runs import RunDirectory, RunError, checkpoint_files, save_average
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_newest,
    step_of,
    write_checkpoint,
)
from kseq.training import Checkpoints, checkpoints
from kseq.user_error import DiskError
from tests.slow import slow
from tests.training.tiny_training import STEPS, make_data, make_model, train

pytestmark = pytest.mark.usefixtures("sighup")


class Signal(keras.callbacks.Callback):
    """Sends this process signals after so many steps."""

    def __init__(self, after, *numbers):
        super().__init__()
        self.after = after
        self.numbers = numbers

    def on_train_batch_end(self, batch, logs=None):
        self.after -= 1
        if self.after == 0:
            for number in self.numbers:
                os.kill(os.getpid(), number)


class Report(keras.callbacks.Callback):
    """Puts these values into the logs, one an epoch."""

    def __init__(self, *values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = self.values[epoch]


def steps(path, name="last"):
    return [step_of(p) for p in checkpoint_paths(path / "checkpoints" / name)]


def assert_same_state(one, other, atol=0):
    variables = [*one.variables, *one.optimizer.variables]
    others = [*other.variables, *other.optimizer.variables]
    for a, b in zip(variables, others, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=atol)


def test_a_stopped_training_resumes_as_if_it_had_not_been(tmp_path):
    """Weights, seeds of dropout, optimizer, order of the data."""

    def trained(path, *callbacks):
        model = make_model(run_eagerly=False)
        return train(tmp_path / path, 4, callbacks, model=model)

    whole = trained("whole")
    for after in (3, STEPS + 1):
        with pytest.raises(SystemExit):
            trained("cut", Signal(after, signal.SIGTERM))
    assert_same_state(trained("cut"), whole)
    assert steps(tmp_path / "cut")[-1] == 4 * STEPS


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
)
def test_a_signal_ends_the_step_and_saves(tmp_path, capsys, number, code):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as stopped:
        train(tmp_path, 4, [Signal(7, number)])
    assert stopped.value.code == code
    assert steps(tmp_path) == [5, 7]
    assert "Stopped after step 7" in capsys.readouterr().err
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP])
def test_a_second_sighup_does_not_keep_it_from_saving(tmp_path, first):
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(SystemExit) as stopped:
        train(tmp_path, 4, [Signal(7, first, signal.SIGHUP)])
    assert stopped.value.code == 128 + first
    assert steps(tmp_path) == [5, 7]
    assert signal.getsignal(signal.SIGHUP) == before


def test_sighup_may_be_ignored(tmp_path):
    """As `nohup` does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    train(tmp_path, 2, [Signal(7, signal.SIGHUP)])
    assert signal.signal(signal.SIGHUP, before) == signal.SIG_IGN
    assert steps(tmp_path) == [5, 10]


def test_it_saves_although_nobody_reads_what_it_prints(tmp_path):
    """Ctrl-C also ends the program that the output is piped into."""
    kept, (ours, theirs) = os.dup(2), os.pipe()
    os.dup2(theirs, 2)
    os.close(theirs)
    os.close(ours)
    try:
        with pytest.raises(SystemExit) as stopped:
            train(tmp_path, 4, [Signal(7, signal.SIGINT)])
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert stopped.value.code == 130
    assert steps(tmp_path) == [5, 7]


def test_machines_ask_each_other_every_tenth_step(
    tmp_path, capsys, monkeypatch
):
    """And stop together: the signal of any of them counts."""
    asked = []

    def ask(own):
        asked.append(own)
        return [0.0, 15.0 if len(asked) == 2 else own]

    monkeypatch.setattr(checkpoints, "num_machines", lambda: 2)
    monkeypatch.setattr(checkpoints, "on_all_machines", ask)
    with pytest.raises(SystemExit) as stopped:
        train(tmp_path, 1, steps=35)
    assert stopped.value.code == 143
    assert steps(tmp_path) == [20]
    assert asked == [0, 0]


class SignalAtTheStart(keras.callbacks.Callback):
    """Comes before checkpoints listen to signals."""

    def on_train_begin(self, logs=None):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_when_fit_begins_ends_the_first_step(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped, stop_in_order():
        train(tmp_path, 4, [SignalAtTheStart()])
    assert stopped.value.code == 143
    assert steps(tmp_path) == [1]
    assert "Stopped after step 1" in capsys.readouterr().err


def test_a_second_signal_stops_at_once(tmp_path, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, 4, [Signal(2, signal.SIGINT, signal.SIGINT)])
    assert steps(tmp_path) == []


class SignalAtTheEnd(keras.callbacks.Callback):
    """Comes when all epochs are saved."""

    def on_train_end(self, logs=None):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_after_the_last_epoch_is_not_lost(tmp_path, capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped:
        train(tmp_path, 2, [SignalAtTheEnd()])
    assert stopped.value.code == 143
    assert "Stopped after step 10, which is saved" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
    train(tmp_path, 2)
    assert steps(tmp_path) == [5, 10]


@pytest.mark.parametrize("times", [slow(1), 2])
def test_a_signal_while_the_last_checkpoint_is_written(
    tmp_path, monkeypatch, times, two_epochs
):
    _, whole = two_epochs
    train(tmp_path / "cut", 1)

    numbers = [signal.SIGTERM] * times  # the second stops at once

    def flush_and_signal(path):
        while numbers:
            os.kill(os.getpid(), numbers.pop())
        flush(path)

    def exit(number, frame):
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, exit)  # that of a recipe
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stopped:
        patch.setattr(checkpoint_files, "flush", flush_and_signal)
        train(tmp_path / "cut", 2)
    signal.signal(signal.SIGTERM, before)
    assert stopped.value.code == 143
    assert steps(tmp_path / "cut") == ([5, 10] if times == 1 else [5])
    load_model(tmp_path / "cut", weights="last")
    assert_same_state(train(tmp_path / "cut", 2), whole)
    assert steps(tmp_path / "cut") == [5, 10]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_what_is_saved_and_averaged(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown, below = Terminal(), Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", below)
        patch.setattr(sys, "stderr", shown)
        train(tmp_path, 2)
        save_average(RunDirectory(tmp_path))
    assert "Saving a checkpoint" in shown.getvalue()
    assert "Averaging 2 checkpoints" in shown.getvalue()
    # Each a line down and up again, and no other.
    assert below.getvalue().count("\n\x1b[A") >= 3
    assert not below.getvalue().replace("\n\x1b[A", "")


def test_the_last_states_are_kept(tmp_path):
    train(tmp_path, epochs=4, keep=2)
    assert steps(tmp_path) == [15, 20]


def test_a_kill_after_the_last_save_leaves_no_state_within_an_epoch(
    tmp_path, monkeypatch
):
    """They would count in the average of the last states."""
    settings = {"epochs": 2, "keep": 2, "save_every": 1e-9}
    delete = checkpoint_files.delete_others

    def kill(directory, keep):
        if steps(tmp_path)[-1] == 2 * STEPS:
            raise KeyboardInterrupt
        delete(directory, keep)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint_files, "delete_others", kill)
        train(tmp_path, **settings)
    ends = [STEPS, 2 * STEPS]
    assert steps(tmp_path) == [STEPS, 2 * STEPS - 1, 2 * STEPS]
    train(tmp_path, **settings)
    assert steps(tmp_path) == ends
    averaged = save_average(RunDirectory(tmp_path), 2)
    assert list(map(step_of, averaged)) == ends


def test_best_has_the_averaged_weights_of_the_best_epoch(tmp_path):
    settings = {"monitor": "val_bleu", "mode": "max"}
    report = Report(1.0, 3.0, 2.0, float("nan"))
    train(tmp_path, 2, [report], **settings)
    best = load_model(tmp_path).get_weights()
    model = train(tmp_path, 4, [report], **settings)

    assert steps(tmp_path, "best") == [10]
    for a, b in zip(load_model(tmp_path).get_weights(), best, strict=True):
        np.testing.assert_array_equal(a, b)
    # Keras leaves the averages in the model when it has finished.
    last = load_model(tmp_path, weights="last").get_weights()
    assert not np.allclose(last[0], model.get_weights()[0])


@pytest.mark.parametrize(
    ("mode", "values", "kept"),
    [
        ("max", (1.0, 3.0, 3.0, 2.0), [10, 15]),
        ("max", (3.0, 3.0, 3.0, 3.0), [5, 10]),  # of equal values the first
        ("min", (1.0, 3.0, 3.0, 2.0), [5, 20]),
        ("max", (math.nan, 3.0, -math.inf, math.nan), [10]),
    ],
)
def test_weights_of_the_best_epochs_are_kept(tmp_path, mode, values, kept):
    """Also across interruptions."""
    settings = {"monitor": "val_bleu", "mode": mode, "keep_best": 2}
    for epochs in (1, 3, 4):
        train(tmp_path, epochs, [Report(*values)], **settings)
    assert steps(tmp_path, "top") == kept
    paths = save_average(RunDirectory(tmp_path), best=9)
    assert [step_of(path) for path in paths] == kept


def test_a_resumption_reads_no_weights_but_those_it_resumes(
    tmp_path, monkeypatch
):
    settings = {"keep_best": 2}
    train(tmp_path, epochs=2, **settings)
    read, restore = set(), tf.raw_ops.RestoreV2

    def recorded(**options):
        folder = Path(options["prefix"]).parent.name
        read.update((folder, name) for name in options["tensor_names"])
        return restore(**options)

    monkeypatch.setattr(tf.raw_ops, "RestoreV2", recorded)
    train(tmp_path, epochs=2, **settings)
    found = {(folder, name.partition("/")[0]) for folder, name in read}
    assert {each for each in found if each[0] != "last"} == {
        ("best", "value"),
        ("top", "score"),
    }


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_one_of_the_best_replaces_another(
    tmp_path, monkeypatch, when
):
    """Neither one more nor one less is kept, and the same ones."""

    class KilledError(BaseException):
        pass

    def kill(directory, keep):
        if directory.name != "top" or len(keep) < 2:
            return
        if when == "after":
            delete(directory, keep)
        raise KilledError

    settings = {"monitor": "val_bleu", "mode": "max", "keep_best": 2}
    report = Report(2.0, 1.0, 3.0, 0.0)
    train(tmp_path, 2, [report], **settings)
    delete = checkpoint_files.delete_others
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(checkpoint_files, "delete_others", kill)
        train(tmp_path, 3, [report], **settings)
    assert steps(tmp_path, "top") == (
        [5, 10, 15] if when == "before" else [5, 15]
    )
    run = RunDirectory(tmp_path)
    assert [step_of(p) for p in save_average(run, best=2)] == [5, 15]
    train(tmp_path, 4, [report], **settings)
    assert steps(tmp_path, "top") == [5, 15]
    assert steps(tmp_path, "best") == [15]


def test_a_broken_one_of_the_best_is_replaced(tmp_path, caplog):
    settings = {"monitor": "val_bleu", "mode": "max", "keep_best": 2}
    report = Report(3.0, 2.0, 1.0)
    train(tmp_path, 2, [report], **settings)
    _flip_a_bit(tmp_path / "checkpoints" / "top" / "ckpt-5.index")
    with pytest.raises(RunError, match="ckpt-5 is broken"):
        save_average(RunDirectory(tmp_path), best=1)
    train(tmp_path, 3, [report], **settings)
    assert "Skipped: " in caplog.text and "ckpt-5 is broken" in caplog.text
    assert steps(tmp_path, "top") == [10, 15]


def test_patience_outlives_an_interruption(tmp_path):
    settings = {"monitor": "val_bleu", "mode": "max", "patience": 3}
    report = Report(2.0, 1.0, 1.0, 1.0, 9.0)
    train(tmp_path, 2, [report], **settings)
    train(tmp_path, 5, [report], **settings)
    assert steps(tmp_path)[-1] == 4 * STEPS
    train(tmp_path, 5, [report], **settings)
    assert steps(tmp_path)[-1] == 4 * STEPS


def test_without_patience_training_goes_on(tmp_path):
    report = Report(2.0, 1.0, 1.0)
    settings = {"monitor": "val_bleu", "mode": "max", "patience": 0}
    train(tmp_path, 3, [report], **settings)
    assert steps(tmp_path)[-1] == 3 * STEPS


def test_the_best_value_is_kept_to_the_bit(tmp_path):
    """As float32 0.7 would be less, and the same value then an improvement."""
    report = Report(0.7, 0.7)
    for epochs in (1, 2):
        train(tmp_path, epochs, [report], monitor="val_bleu", mode="max")
    assert steps(tmp_path, "best") == [STEPS]


def _flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


BREAKS = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "missing": Path.unlink,
    "flipped": _flip_a_bit,
}


@pytest.mark.parametrize("damage", BREAKS)
@pytest.mark.parametrize("part", [".data-00000-of-00001", ".index", ".sha256"])
def test_a_broken_checkpoint_is_passed_over(broken_run, part, damage, caplog):
    folder = broken_run / "checkpoints" / "last"
    BREAKS[damage](folder / f"ckpt-10{part}")

    if (part, damage) == (".sha256", "missing"):  # what a killed save leaves
        path, _ = read_newest(folder)
    else:
        path, _ = read_newest(folder)
        message, used = caplog.messages
        assert "ckpt-10 is broken" in message
        assert used == f"{folder / 'ckpt-5'} is used instead."
        assert message.startswith("Skipped: ") and "\n" not in message
    assert step_of(path) == 5


def test_a_checkpoint_that_is_replaced_while_it_is_read(
    tmp_path, monkeypatch, caplog
):
    """The reader finds the newer one; that the older one is gone is no news."""
    value = tf.Variable(1.0)
    write_checkpoint(tmp_path, 1, 1, value=value)
    check, saves = checkpoint_files._check_manifest, iter([2, 3, 3])

    def check_after_a_save(path):
        if step := next(saves, None):
            value.assign_add(1)
            write_checkpoint(tmp_path, step, 1, value=value)
        check(path)

    monkeypatch.setattr(checkpoint_files, "_check_manifest", check_after_a_save)
    path, tensors = read_newest(tmp_path)
    assert step_of(path) == 3
    assert float(tensors["value"]) == 4.0
    assert not caplog.messages


def test_training_resumes_from_the_checkpoint_before(broken_run, caplog):
    folder = broken_run / "checkpoints" / "last"
    _flip_a_bit(folder / "ckpt-10.index")
    checkpoints = Checkpoints(RunDirectory(broken_run))
    assert checkpoints.restore(make_model(), make_data(), STEPS)[0] == 1
    assert "ckpt-10 is broken" in caplog.text

    os.truncate(folder / "ckpt-5.index", 20)
    caplog.clear()
    with pytest.raises(RunError, match="every checkpoint is broken"):
        checkpoints.restore(make_model(), make_data(), STEPS)
    assert "ckpt-5 is broken" in caplog.text


def test_patience_counts_from_the_resumption_if_the_best_are_broken(
    broken_run, caplog
):
    """Or training would end at once, without any best weights."""
    [index] = (broken_run / "checkpoints" / "best").glob("*.index")
    index.unlink()
    checkpoints = Checkpoints(RunDirectory(broken_run), patience=1)
    assert checkpoints.restore(make_model(), make_data(), STEPS)[0] == 2
    assert "is broken" in caplog.text


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory):
    """A run of two epochs, and its model."""
    path = tmp_path_factory.mktemp("two_epochs")
    return path, train(path, epochs=2)


@pytest.fixture(scope="module")
def two_checkpoints(two_epochs):
    return two_epochs[0]


@pytest.fixture
def broken_run(two_checkpoints, tmp_path):
    """A run with two checkpoints, to be broken."""
    return shutil.copytree(two_checkpoints, tmp_path / "run")


def test_the_manifest_is_that_of_sha256sum(two_checkpoints):
    manifests = sorted((two_checkpoints / "checkpoints").rglob("*.sha256"))
    assert len(manifests) >= 2
    for path in manifests:
        lines = [line.split("  ") for line in path.read_text().splitlines()]
        assert len(lines) == 2
        for digest, name in lines:
            content = path.with_name(name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest


def test_files_and_folder_are_flushed_before_the_checkpoint_counts(
    tmp_path, monkeypatch
):
    """The manifest last, and its folder after it: so a cut power loses none."""
    flushed = []

    def note(descriptor):
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    monkeypatch.setattr(os, "fsync", note)
    folder = tmp_path / "last"
    write_checkpoint(folder, 7, keep=1, vars=[tf.Variable(1.0)])
    assert flushed == [
        "ckpt-7.data-00000-of-00001",
        "ckpt-7.index",
        "ckpt-7.sha256.part",
        "last",
    ]


def test_what_a_killed_save_left_goes_with_the_next(broken_run):
    folder = broken_run / "checkpoints" / "last"
    (folder / "ckpt-12_temp").mkdir()
    for name in ("ckpt-12_temp/part-00000-of-00001.index", "ckpt-12.index"):
        (folder / name).write_bytes(b"half")
    train(broken_run, epochs=3, keep=1)
    names = {path.name for path in folder.iterdir()}
    data = "ckpt-15.data-00000-of-00001"
    assert names == {data, "ckpt-15.index", "ckpt-15.sha256"}


@contextlib.contextmanager
def full_disk():
    """No file can become larger than it is, or than 500 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        yield
    finally:  # before pytest writes, which may be to a file
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_nothing(broken_run):
    """The next save fails, the last one stays."""
    with (
        pytest.raises(
            DiskError, match=r"ckpt-15 could not .* intact\. [^{]+$"
        ) as stopped,
        full_disk(),
    ):
        train(broken_run, epochs=3)
    assert stopped.value.exit_code == 4
    path, _ = read_newest(broken_run / "checkpoints" / "last")
    assert step_of(path) == 10


def numbered_data():
    """Batches that differ, and start at any position."""

    def batch(position):
        rows = tf.range(4, dtype=tf.int64) + 3 * position
        return tf.one_hot(rows % 8, 8), tf.cast(rows % 3, tf.float32)

    return numbered_batches(batch)


def test_a_position_of_version_0_2_is_found_again(tmp_path, capsys, two_epochs):
    train(tmp_path, 1)
    path, tensors = read_newest(tmp_path / "checkpoints" / "last")
    read = tensors.pop("stream_position")
    state = {
        part: [tf.Variable(value) for value in numbered(tensors, part)]
        for part in ("vars", "opt")
    }
    folder = tmp_path / "checkpoints" / "last"
    write_checkpoint(
        folder, step_of(path), 1, **state, batches_read=tf.Variable(read)
    )
    assert_same_state(train(tmp_path, 2), two_epochs[1])
    assert "Skipping 5 batches" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["numbered", slow("distributed"), "generated"])
def test_data_resume_at_their_position(tmp_path, kind, two_devices, capsys):
    """At once, or by skipping what an unknown data set has read."""

    def parts():
        if kind == "numbered":
            return numbered_data(), make_model()
        if kind == "distributed":
            with two_devices.scope():
                model = make_model()  # first: it sets the global seed
                # Two devices round as they like, and Adam's first steps
                # have the size of the rate where a gradient is but rounding.
                sgd = keras.optimizers.SGD(0.01)
                model.compile(sgd, "mse", jit_compile=False)
                # In the order they have: Keras reads the first batch of a
                # distributed data set with an iterator of its own, and which
                # of two iterators shuffles first is a race.
                return make_data(shuffled=False), model
        spec = (tf.TensorSpec((8,)), tf.TensorSpec(()))
        examples = [(x, i % 3) for i, x in enumerate(np.eye(8))]
        data = tf.data.Dataset.from_generator(
            lambda: iter(examples), output_signature=spec
        )
        return data.repeat().batch(4), make_model()

    def train_on(path, epochs):
        data, model = parts()
        return train(tmp_path / path, epochs, data=data, model=model)

    whole = train_on("whole", 2)
    for epochs in (1, 2):
        cut = train_on("cut", epochs)
    assert_same_state(cut, whole, atol=1e-6 if kind == "distributed" else 0)
    is_skipped = "Skipping 5 batches" in capsys.readouterr().err
    assert is_skipped == (kind != "numbered")


def test_a_run_that_was_killed_resumes(tmp_path):
    """At any moment of a save."""
    script = Path(__file__).with_name("killed_training.py")
    subprocess.run([sys.executable, script, tmp_path], check=True, timeout=120)
    assert load_model(tmp_path, weights="last").count_params() > 0
    assert load_model(tmp_path, weights="best").count_params() > 0
    assert not list(tmp_path.glob("*.part"))

    # The second training began its save after step 10, and may have been killed
    # before that was complete.
    step = steps(tmp_path)[-1]
    assert step >= STEPS
    train(tmp_path, epochs=step // STEPS + 1)
    assert steps(tmp_path)[-1] == step + STEPS


@pytest.mark.parametrize("batches", [-1, 2])
def test_data_must_repeat_and_epochs_have_a_length(tmp_path, batches):
    with pytest.raises(ValueError, match="steps_per_epoch"):
        make_model().fit(
            make_data().take(batches),
            epochs=2,
            callbacks=[Checkpoints(RunDirectory(tmp_path), monitor="loss")],
            shuffle=False,
            verbose=0,
        )


def test_an_unknown_mode_is_refused(tmp_path):
    with pytest.raises(ValueError, match="mode='best'"):
        Checkpoints(RunDirectory(tmp_path), mode="best")


@pytest.mark.parametrize(
    "options",
    [
        *({"keep": value} for value in (0, -1, True, 2.0, None)),
        *({"patience": value} for value in (-1, float("nan"))),
        *({"keep_best": value} for value in (-1, True, 2.0, None)),
        {"patience": 2, "monitor": None},
    ],
    ids=str,
)
def test_absurd_values_are_refused(broken_run, options):
    """Before any checkpoint is deleted."""
    before = steps(broken_run)
    (name, value), *_ = options.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value}"):
        Checkpoints(RunDirectory(broken_run), **options)
    assert steps(broken_run) == before


def test_a_misspelt_monitor_is_an_error_that_loses_nothing(tmp_path):
    """At the end of the first epoch, with the names that there are."""
    with pytest.raises(RunError) as stopped:
        train(tmp_path, epochs=3, monitor="val_blue", patience=2)
    message = str(stopped.value)
    assert "monitor='val_blue' is not measured. These are: loss." in message
    assert stopped.value.exit_code == 2
    assert steps(tmp_path) == [STEPS]
    train(tmp_path, epochs=2)
    assert steps(tmp_path) == [STEPS, 2 * STEPS]


def test_a_run_that_monitors_nothing_has_no_best_weights(tmp_path):
    train(tmp_path, epochs=2, monitor=None)
    assert steps(tmp_path) == [STEPS, 2 * STEPS]
    assert not (tmp_path / "checkpoints" / "best").exists()


STRAY = (
    *("ckpt-450 (copy).sha256", "ckpt-abc.sha256", "ckpt-.sha256"),
    *("ckpt-abc.index", "ckpt-1²3.sha256", "ckpt--5.sha256"),
)


def test_files_of_a_user_are_no_checkpoints(broken_run):
    """They are not read, and not deleted."""
    folder = broken_run / "checkpoints" / "last"
    for name in STRAY:
        (folder / name).write_text("mine")
    (folder / "ckpt-450.sha256").mkdir()
    assert steps(broken_run) == [5, 10]
    train(broken_run, epochs=3, keep=2)
    assert steps(broken_run) == [10, 15]
    assert all((folder / name).read_text() == "mine" for name in STRAY)


def test_a_checkpoint_of_something_else(broken_run):
    """Its number, its shapes or its entries are named."""
    model = make_model()
    run = RunDirectory(broken_run)
    _, tensors = read_newest(run.checkpoints / "last")
    weights = [tf.Variable(value) for value in numbered(tensors, "vars")]
    state = [tf.Variable(value) for value in numbered(tensors, "opt")]
    for values, message in (
        ({"vars": weights[:-1], "opt": state}, "has 2 variables; the model"),
        ({"vars": weights, "opt": state[:-1]}, "they do not belong together"),
        ({"vars": weights, "opt": state}, "has no batches_read"),
        ({"vars": weights[::-1], "opt": state}, "which has the shape"),
    ):
        write_checkpoint(run.checkpoints / "last", 20, 1, **values)
        with pytest.raises(RunError, match=message):
            Checkpoints(run).restore(model, make_data(), STEPS)


def test_the_best_weights_without_their_score(broken_run):
    run = RunDirectory(broken_run)
    write_checkpoint(run.checkpoints / "best", 20, 1, vars=[tf.Variable(1.0)])
    with pytest.raises(RunError, match="ckpt-20 has no value"):
        Checkpoints(run).restore(make_model(), make_data(), STEPS)
