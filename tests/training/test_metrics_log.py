import json
import math
import time

import keras
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from kseq.files import recorded_metrics
from kseq.runs import RunDirectory
from kseq.training import MetricsLog, metrics_log
from kseq.training.metrics_log import best_validation, is_improving
from tests.models.one_by_one import one_by_one
from tests.models.test_exact_model import batches, tiny_model


class Model:
    """What the callback reads of a model: optimizer, metrics and waiting."""

    def __init__(self):
        self.seconds_waiting = 0.0
        self.optimizer = keras.optimizers.SGD(0.25)
        self.others = ()  # metrics of a user
        self.means = [
            keras.metrics.Mean(name=name)
            for name in (
                *("loss", "perplexity", "accuracy"),
                *("tokens", "padding", "gradient_norm"),
            )
        ]

    @property
    def metrics(self):
        return [*self.means, *self.others]

    def train(self, loss, tokens, padding, norm):
        """One step, as `ExactModel` reports it."""
        self.optimizer.iterations.assign_add(1)
        self.seconds_waiting += 1e-6
        values = (loss, loss, 1 / loss, tokens, padding, norm)
        weights = (tokens, tokens, tokens, 1, 1, 1)
        for metric, value, weight in zip(
            self.means, values, weights, strict=True
        ):
            metric.update_state(value, weight)


def record(tmp_path, steps, every, epoch_logs=None, metrics=()):
    run = RunDirectory(tmp_path)
    log = MetricsLog(run, total_steps=len(steps), every=every)
    log.set_model(Model())
    log.model.others = metrics
    log.set_params({"steps": len(steps)})
    log.on_train_begin()
    log.on_epoch_begin(0)
    for batch, step in enumerate(steps):
        log.model.train(*step)
        log.on_train_batch_end(batch, {})
    log.on_epoch_end(0, epoch_logs or {})
    log.on_train_end()
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def events(path, part):
    """What TensorBoard's classic loader reads, in the order of writing.

    It sorts files by name: of two that a process has written in one second,
    its tenth comes before its ninth.
    """
    folder = path / "tensorboard" / part
    for file in [*folder.iterdir()]:
        start, number, version = file.name.rsplit(".", 2)
        file.rename(folder / f"{start}.{number:0>6}.{version}")
    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def scalars(path, part):
    """{tag: [(step, value)]}."""
    shown = events(path, part)
    return {
        tag: [
            (event.step, float(tf.make_ndarray(event.tensor_proto)))
            for event in shown.Tensors(tag)
        ]
        for tag in shown.PluginTagToContent("scalars")
    }


STEPS = [
    (4.0, 10, 0.5, 1.0),
    (2.0, 30, 0.1, 3.0),
    (1.0, 20, 0.2, 5.0),
    (3.0, 60, 0.4, 9.0),
]


def test_the_last_line_of_an_epoch_has_the_rest_of_its_steps(tmp_path):
    lines = record(tmp_path, STEPS, every=3, epoch_logs={"val_loss": 1.0})
    assert [line["step"] for line in lines] == [3, 4, 4]
    assert lines[1]["loss"] == 3.0
    assert lines[1]["gradient_norm"] == 9.0
    assert "resumed" not in lines[0]
    assert "loss" not in lines[2]


def test_lines_after_a_resumption_are_marked(tmp_path):
    """They are not the same to the bit: `kseq verify` leaves them out."""
    run = RunDirectory(tmp_path)
    log = MetricsLog(run, total_steps=8, every=2)
    log.set_model(Model())
    log.set_params({"steps": 4})
    log.model.train(*STEPS[0])
    log.on_train_begin()
    for epoch, steps in enumerate([STEPS[1:], STEPS]):
        log.on_epoch_begin(epoch)
        for batch, step in enumerate(steps):
            log.model.train(*step)
            log.on_train_batch_end(batch, {})
        log.on_epoch_end(epoch, {})
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    assert [(row["step"], row.get("resumed")) for row in rows] == [
        *((2, True), (4, True), (6, None), (8, None)),
    ]


def test_each_line_is_about_its_own_steps(tmp_path):
    first, second = record(tmp_path, STEPS, every=2)
    assert first["step"] == 2
    assert first["loss"] == pytest.approx((40 + 60) / 40)
    assert first["gradient_norm"] == pytest.approx(2)
    assert first["padding"] == pytest.approx(0.3)
    assert second["step"] == 4
    assert second["loss"] == pytest.approx((20 + 180) / 80)
    assert second["perplexity"] == pytest.approx(math.exp(2.5))
    assert second["gradient_norm"] == pytest.approx(7)
    assert second["padding"] == pytest.approx(0.3)
    assert second["learning_rate"] == 0.25
    assert second["tokens_per_second"] > 0
    steps_per_second = second["tokens_per_second"] / 40
    assert second["waiting_for_data"] == pytest.approx(1e-6 * steps_per_second)


def test_metrics_that_are_no_means_are_not_in_it(tmp_path):
    """They have no mean since the last line."""
    expected = record(tmp_path / "without", STEPS, every=2)
    metrics = [keras.metrics.Sum(), keras.metrics.AUC()]
    found = record(tmp_path / "with", STEPS, every=2, metrics=metrics)
    assert [row.keys() for row in found] == [row.keys() for row in expected]


def test_the_memory_of_a_gpu_is_in_each_line(tmp_path, monkeypatch):
    first, _ = record(tmp_path / "without", STEPS, every=2)
    assert "gpu_memory" not in first
    peaks = iter([2.5e9, 3e9])
    monkeypatch.setattr(metrics_log, "gpu_memory", lambda: next(peaks))
    rows = record(tmp_path / "with", STEPS, every=2)
    assert [row["gpu_memory"] for row in rows] == [2.5, 3.0]


@pytest.mark.slow
def test_what_two_devices_have_measured_together(tmp_path, two_devices):
    with two_devices.scope():
        model = tiny_model()
        model.compile(keras.optimizers.SGD(0.25))
    run = RunDirectory(tmp_path)
    model.fit(
        one_by_one(batches([6, 5])),
        callbacks=[MetricsLog(run, total_steps=2, every=1)],
        shuffle=False,
        verbose=0,
    )
    for line, batch in zip(
        run.metrics.read_text().splitlines(), batches([6, 5]), strict=True
    ):
        record = json.loads(line)
        assert record["learning_rate"] == 0.25
        assert record["padding"] == pytest.approx(1 - batch[2].mean())


def test_a_resumed_training_writes_no_step_twice(tmp_path):
    run = RunDirectory(tmp_path)
    record(tmp_path, STEPS, every=2)
    with run.metrics.open("ab") as file:
        file.write(b'\0\xff\n[]\n{"loss": 1}\n')  # of a broken disk
        file.write(b'{"step": 5, "los')  # killed

    log = MetricsLog(run, total_steps=8, every=2)
    log.set_model(Model())
    log.set_params({"steps": 4})
    log.model.optimizer.iterations.assign(3)
    log.on_train_begin()
    log.on_epoch_begin(0)
    for batch, step in enumerate(STEPS[:3]):
        log.model.train(*step)
        log.on_train_batch_end(batch, {})
    log.on_train_end()

    records = map(json.loads, run.metrics.read_text().splitlines())
    assert [record["step"] for record in records] == [2, 4, 6]


def test_validation_has_a_line_of_its_own(tmp_path):
    *_, last = record(tmp_path, STEPS, 2, {"loss": 1.0, "val_bleu": 12.5})
    assert last == {"step": 4, "val_bleu": 12.5}


def test_lines_for_a_pipe(tmp_path, capsys):
    record(tmp_path, STEPS, 2, {"val_bleu": 12.5})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["2/4", "4/4", "4/4"]
    assert "loss 2.5 " in lines[0]
    assert lines[-1].endswith("val_bleu 12.5")


def test_tensorboard_has_the_same_numbers(tmp_path):
    [line] = record(tmp_path, STEPS, every=4)
    shown = scalars(tmp_path, "train")
    assert shown.keys() == line.keys() - {"step"}
    [(step, loss)] = shown["loss"]
    assert (step, loss) == (4, pytest.approx(line["loss"]))


def test_the_loss_in_tensorboard_is_without_smoothing(tmp_path):
    model = tiny_model()
    model.get_layer("logits").bias.assign(range(11))
    # Tracing would take longer than the steps.
    settings = {"label_smoothing": 0.3, "run_eagerly": True}
    model.compile(keras.optimizers.SGD(0.25), **settings)
    run = RunDirectory(tmp_path)
    model.fit(
        one_by_one(batches([6, 5])),
        callbacks=[MetricsLog(run, total_steps=2, every=1)],
        shuffle=False,
        verbose=0,
    )
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    shown = scalars(tmp_path, "train")
    for line, loss, smoothed in zip(
        lines, shown["loss"], shown["smoothed_loss"], strict=True
    ):
        assert loss[1] == pytest.approx(math.log(line["perplexity"]))
        assert smoothed[1] == pytest.approx(line["loss"])
        assert loss[1] < smoothed[1]


def test_validation_has_the_tags_of_training(tmp_path):
    record(tmp_path, STEPS, 2, {"val_loss": 0.5, "val_bleu": 12.5})
    shown = scalars(tmp_path, "validation")
    assert shown == {"loss": [(4, 0.5)], "bleu": [(4, 12.5)]}


def test_the_config_and_the_best_scores_are_hyperparameters(tmp_path):
    run = RunDirectory(tmp_path / "dates")
    run.path.mkdir()
    config = {"units": 8, "ema": 0.5, "train": ["a.de", "a.en"], "from": None}
    run.config.write_text(json.dumps({**config, "balanced": True}))
    log = MetricsLog(run, total_steps=3, monitor="val_loss", mode="min")
    log.set_model(Model())
    log.set_params({"steps": 1})
    log.on_train_begin()
    for epoch, loss in enumerate([3.0, 1.0, 2.0]):
        log.on_epoch_begin(epoch)
        log.model.train(*STEPS[0])
        log.on_epoch_end(epoch, {"val_loss": loss, "val_bleu": 9 - loss})
    log.on_train_end()

    shown = scalars(run.path, "validation")
    assert shown["best/loss"] == [(1, 3.0), (2, 1.0), (3, 1.0)]
    assert shown["best/bleu"] == [(1, 6.0), (2, 8.0), (3, 8.0)]
    content = events(run.path, "validation").PluginTagToContent("hparams")
    data = HParamsPluginData.FromString(
        content["_hparams_/session_start_info"]
    ).session_start_info
    assert data.group_name == "dates"
    values = {
        name: getattr(value, value.WhichOneof("kind"))
        for name, value in data.hparams.items()
    }
    assert values == {
        **{"units": 8.0, "ema": 0.5, "balanced": True},
        **{"train": "a.de, a.en", "from": "null"},
    }


def test_a_resumed_run_shows_no_step_twice(tmp_path):
    record(tmp_path, STEPS, 2, {"val_bleu": 12.5})
    # TensorBoard reads files by their names, which begin with the second.
    time.sleep(1)
    log = MetricsLog(RunDirectory(tmp_path), total_steps=8, every=2)
    log.set_model(Model())
    log.set_params({"steps": 4})
    log.model.optimizer.iterations.assign(2)
    log.on_train_begin()
    log.on_epoch_begin(0)
    for batch, step in enumerate(STEPS):
        log.model.train(*step)
        log.on_train_batch_end(batch, {})
    log.on_epoch_end(0, {"val_bleu": 13.5})
    # Read while it is written, and not closed.
    assert [step for step, _ in scalars(tmp_path, "train")["loss"]] == [2, 4, 6]
    assert scalars(tmp_path, "validation")["bleu"] == [(6, 13.5)]
    log.on_train_end()
    assert len(list((tmp_path / "tensorboard" / "train").iterdir())) == 2


def test_histograms_and_the_graph_are_options(tmp_path):
    model = tiny_model()
    model.compile(keras.optimizers.SGD(0.25))
    run = RunDirectory(tmp_path)
    log = MetricsLog(run, total_steps=2, every=1, histograms=True, graph=True)
    model.fit(
        one_by_one(batches([6, 5])), callbacks=[log], shuffle=False, verbose=0
    )
    shown = events(tmp_path, "train")
    graphs = shown.PluginTagToContent("graph_run_metadata_graph")
    assert graphs.keys() == {"training_step"}
    tags = shown.PluginTagToContent("histograms").keys()
    assert tags == {variable.path for variable in model.trainable_variables}


@pytest.mark.parametrize("every", [0, -1])
def test_a_pause_without_steps_is_refused(tmp_path, every):
    with pytest.raises(ValueError, match=f"Received: every={every}"):
        MetricsLog(RunDirectory(tmp_path), total_steps=2, every=every)


@pytest.mark.parametrize(
    ("mode", "step"), [("max", 2), ("min", 1)], ids=["max", "min"]
)
def test_the_best_validation_of_a_log_with_broken_lines(tmp_path, mode, step):
    run = RunDirectory(tmp_path)
    assert best_validation(run, "val_loss", mode) is None
    records = [
        *({"step": 1, "val_loss": 1.0}, {"step": 2, "val_loss": 3.0}),
        *({"step": 3, "val_loss": 3.0}, {"step": 4, "loss": 9.0}),
        *({"val_loss": 9.0}, {"step": 5, "val_loss": float("nan")}),
        *([], None, {"step": 6, "val_loss": "9"}),
    ]
    lines = [json.dumps(record) for record in records]
    run.metrics.write_text("\n".join(lines) + '\n{"step": 7, "val_')
    assert best_validation(run, "val_loss", mode)["step"] == step


@pytest.mark.parametrize(
    ("scores", "mode", "improves"),
    [
        ([10, 20, 30, 31], "max", True),
        ([10, 20, 31, 31.2], "max", False),
        ([10, 32, 30, 31], "max", False),
        ([10, 20, 30, 29, 28, 27, 31, 30], "max", True),
        ([3, 2, 1, 0.98], "min", True),
        ([3, 2, 1, 0.995], "min", False),
        ([3, 2, 1, 1.1], "min", False),
        ([-9, -8, -7, -6], "max", True),
        ([0, 0, 0, 1], "max", True),
        ([0, 0, 0, 0], "max", False),
        ([10, 20, 30], "max", False),
        ([], "max", False),
    ],
)
def test_a_training_that_ends_too_early_says_so(
    tmp_path, capsys, scores, mode, improves
):
    run = RunDirectory(tmp_path)
    for step, score in enumerate(scores):
        row = json.dumps({"step": step, "val_bleu": score})
        with run.metrics.open("a") as file:
            file.write(row + "\n")
    assert is_improving(run, "val_bleu", mode) is improves
    for total, is_told in ((3, improves), (4, False)):
        log = MetricsLog(run, total, monitor="val_bleu", mode=mode)
        log.set_model(Model())
        log.model.optimizer.iterations.assign(3)
        log.on_train_end()
        printed = capsys.readouterr().out
        assert ("val_bleu still improved" in printed) == is_told


def test_a_full_disk_is_not_taken_for_standard_output(tmp_path):
    run = RunDirectory(tmp_path)
    run.metrics.symlink_to("/dev/full")
    log = MetricsLog(run, total_steps=2)
    log.set_model(Model())
    with pytest.raises(OSError, match="No space left") as raised:
        log.on_epoch_end(0, {"val_loss": 1.0})
    assert raised.value.filename == str(run.metrics)


def test_the_best_validation_is_found_without_reading_each_step(
    tmp_path, monkeypatch
):
    run = RunDirectory(tmp_path)
    rows = [{"step": step, "loss": 1.0} for step in range(50)]
    rows += [{"step": 50, "val_loss": 2.0}, {"step": 60, "val_loss": 1.5}]
    run.metrics.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    read = []
    row_of = recorded_metrics.row_of
    monkeypatch.setattr(
        recorded_metrics,
        "row_of",
        lambda line: read.append(line) or row_of(line),
    )
    assert best_validation(run, "val_loss", "min") == rows[-1]
    assert len(read) == 2
