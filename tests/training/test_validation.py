import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator

from kseq.evaluation import Score
from kseq.runs import RunDirectory
from kseq.training import Validation, validation


class Evaluation:
    """Scores the one weight of a model."""

    columns = ("text", "label", "predicted")

    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 2

    @property
    def results(self):
        return {"weight": Score(0.0, "weight 0  in all")}

    def scores(self, progress=None):
        return {"weight": float(self.model.get_weights()[0][0, 0])}

    def rows(self, count):
        rows = [("it is\na\tb|<c>", "yes", "no"), ("so", "no", "no")]
        return rows[:count]

    def pictures(self, count):
        png = tf.io.encode_png(tf.zeros((4, 4, 3), tf.uint8)).numpy()
        return {f"part/{number}": png for number in range(count)}


@pytest.fixture
def model():
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    sgd = keras.optimizers.SGD(0.1, use_ema=True)
    model.compile(sgd, "mse", jit_compile=False)
    for _ in range(3):  # not fit, which puts the averages into the model
        model.train_on_batch(np.ones((1, 1)), np.ones(1))
    return model


def validated(model, path, **settings):
    callback = Validation(
        RunDirectory(path), Evaluation(model), samples=1, **settings
    )
    callback.set_model(model)
    logs = {}
    callback.on_epoch_end(0, logs)
    return logs


def test_scores_of_the_moving_averages_go_into_the_logs(model, tmp_path):
    weight = model.get_weights()[0].copy()
    logs = validated(model, tmp_path)
    assert logs.keys() == {"val_weight"}
    assert logs["val_weight"] != weight[0, 0]
    np.testing.assert_array_equal(model.get_weights()[0], weight)


def test_what_evaluate_reports_goes_there_too(model, tmp_path):
    batches = tf.data.Dataset.from_tensors((np.ones((2, 1)), np.zeros(2)))
    logs = validated(model, tmp_path, batches=batches)
    assert logs["val_loss"] == pytest.approx(logs["val_weight"] ** 2, rel=1e-5)


def test_rows_and_pictures_are_shown(model, tmp_path):
    validated(model, tmp_path, pictures=2)
    table = (tmp_path / "samples" / "00000003.md").read_text()
    assert table.splitlines() == [
        "| text | label | predicted |",
        "| --- | --- | --- |",
        "| it is a\tb&#124;&lt;c&gt; | yes | no |",
    ]
    path = tmp_path / "tensorboard" / "validation"
    events = event_accumulator.EventAccumulator(str(path))
    events.Reload()
    tags = events.Tags()["tensors"]
    assert {"part/0", "part/1", "samples"} <= set(tags)


def test_of_a_cluster_the_chief_alone_generates(model, tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "is_chief", lambda: False)
    of_chief = {"val_weight": 0.5, "val_loss": 2.0}
    monkeypatch.setattr(validation, "from_chief", lambda own: of_chief)
    monkeypatch.setattr(Evaluation, "scores", None)
    monkeypatch.setattr(Evaluation, "pictures", None)
    logs = validated(model, tmp_path)
    assert logs == of_chief
    assert not (tmp_path / "samples").exists()
