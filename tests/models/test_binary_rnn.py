"""Recurrent networks that predict the bits of each step."""

import functools
import json

import keras
import numpy as np
import pytest

from kseq.data import VectorPreprocessor, binary_batches, binary_examples
from kseq.data.algorithms import CopySequence
from kseq.evaluation import BitErrors
from kseq.layers import NeuralTuringMachine
from kseq.models import BinaryRNN
from kseq.serving import Transducer
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.new_weights import new_weights


def turing_machine(**settings):
    sizes = {"slots": 6, "slot_dim": 4, "controller_units": 5}
    return NeuralTuringMachine(4, **{**sizes, **settings})


def two_cells():
    lstm = keras.layers.LSTMCell(4), keras.layers.LSTMCell(5)
    return keras.layers.StackedRNNCells(lstm)


CELLS = {
    "memory": turing_machine,
    "heads": lambda: turing_machine(read_heads=2, write_heads=3),
    "lstm": lambda: keras.layers.LSTMCell(4),
    "two cells": two_cells,
}


@functools.cache
def built(kind, dtype=None):
    """A model, and what its variables were at first."""
    model = BinaryRNN(3, 2, CELLS[kind](), dtype=dtype)
    return model, [variable.numpy() for variable in model.variables]


def batch_of(size, length=5):
    """Inputs, bits and weights; the last step of a row counts not."""
    labels = np.random.randint(2, size=(size, length, 2)).astype("float32")
    weights = np.random.randint(3, size=(size, length)).astype("float32")
    weights[:, -1] = 0
    return {"source": normal(size, length, 3)}, labels, weights


@pytest.mark.parametrize("kind", ["memory", "two cells"])
def test_later_inputs_change_nothing_before_them(seed, kind):
    model = new_weights(*built(kind))
    source = normal(2, 5, 3)
    logits = model({"source": source})
    assert logits.shape == (2, 5, 2)
    other = source.copy()
    other[:, 3:] += 1
    changed = model({"source": other})
    np.testing.assert_array_equal(changed[:, :3], logits[:, :3])
    assert np.abs(changed[:, 3] - logits[:, 3]).min() > 0
    np.testing.assert_allclose(
        model({"source": source[:, :3]}), logits[:, :3], atol=1e-6
    )


@pytest.mark.parametrize("kind", ["memory", "heads"])
@pytest.mark.parametrize("dtype", [None, *HALF_POLICIES])
def test_weightings_are_those_of_the_answer(seed, kind, dtype):
    model = new_weights(*built(kind, dtype))
    inputs, _, _ = batch_of(2)
    found = model.weightings(inputs)
    np.testing.assert_allclose(found["logits"], model(inputs), atol=1e-5)
    sizes = {"read": model.cell.read_heads, "write": model.cell.write_heads}
    for name, heads in sizes.items():
        weights = found[f"{name}_weights"].numpy()
        assert weights.dtype == np.float32
        assert weights.shape == (2, 5, heads, 6)
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


def test_weightings_are_in_the_order_of_the_cell(seed):
    model = new_weights(*built("heads"))
    source = normal(2, 3, 3)
    found = model.weightings({"source": source})
    states = model.cell.get_initial_state(2)
    for step in range(3):
        _, states = model.cell(source[:, step], states)
        read, written = model.cell.weights_of(states)
        for name, weights in (("read", read), ("write", written)):
            np.testing.assert_allclose(
                found[f"{name}_weights"][:, step], weights, atol=1e-6
            )


@pytest.mark.parametrize("kind", CELLS)
def test_round_trip_through_a_file(seed, tmp_path, kind):
    model = new_weights(*built(kind))
    inputs, _, _ = batch_of(2)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(model(inputs), again(inputs))
    one, other = (json.dumps(each.get_config()) for each in (model, again))
    assert one == other
    assert again.has_memory == (kind in ("memory", "heads"))


def test_a_config_has_the_arguments_of_keras():
    cell = keras.layers.LSTMCell(2)
    model = BinaryRNN(3, 2, cell, name="bits", trainable=False)
    again = BinaryRNN.from_config(model.get_config())
    assert (again.name, again.trainable) == ("bits", False)
    assert "trainable" not in BinaryRNN(3, 2, cell).get_config()


def test_a_model_has_its_own_copy_of_a_cell():
    cell = turing_machine()
    one, other = BinaryRNN(3, 2, cell), BinaryRNN(2, 2, cell)
    assert not cell.built
    assert one.cell is not other.cell
    assert one.cell.get_config()["slots"] == cell.slots


@pytest.mark.parametrize("kind", ["memory", "two cells"])
def test_all_cells_have_the_dtype_of_the_model(kind):
    model, _ = built(kind, "mixed_bfloat16")
    cells = [model.cell, *getattr(model.cell, "cells", ())]
    names = {cell.dtype_policy.name for cell in cells}
    assert names == {"mixed_bfloat16"}
    assert model(batch_of(2)[0]).dtype == "float32"


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_is_the_cross_entropy_of_each_bit(seed, smoothing):
    model = new_weights(*built("lstm"))
    inputs, labels, weights = batch_of(3)
    logits = model(inputs)
    found = model.token_losses(inputs, labels, logits, weights, smoothing)
    ones = 1 / (1 + np.exp(-numpy_of(logits).astype("float64")))
    targets = np.where(labels, 1 - smoothing / 2, smoothing / 2)
    losses = -targets * np.log(ones) - (1 - targets) * np.log(1 - ones)
    np.testing.assert_allclose(found.loss, losses, 1e-5, 1e-6)
    np.testing.assert_array_equal(found.right, (ones > 0.5) == labels)
    np.testing.assert_array_equal(
        found.weight, np.repeat(weights[:, :, None], 2, axis=2)
    )
    alone = model.token_losses(inputs, labels, logits, None, smoothing)
    np.testing.assert_array_equal(alone.loss, found.loss)
    assert alone.weight is None


def test_reports_means_by_weight(seed):
    model = new_weights(*built("lstm"))
    model.compile("sgd", run_eagerly=True)
    inputs, labels, weights = batch_of(3)
    report = model.test_on_batch(inputs, labels, weights, return_dict=True)
    ones = 1 / (1 + np.exp(-numpy_of(model(inputs))))
    losses = -np.log(np.where(labels, ones, 1 - ones)).mean(axis=2)
    right = ((ones > 0.5) == labels).mean(axis=2)
    for name, values in (("loss", losses), ("accuracy", right)):
        expected = (values * weights).sum() / weights.sum()
        assert report[name] == pytest.approx(expected, abs=1e-5)
    assert "perplexity" not in report


@pytest.mark.slow  # tracing takes long
@pytest.mark.parametrize("kind", ["memory", "lstm"])
def test_two_devices_equal_one(two_devices, kind):
    """Also if a device gets fewer rows, or none."""
    np.random.seed(5)
    batches = [batch_of(size) for size in (4, 3, 1)]

    def make():
        return BinaryRNN(3, 2, CELLS[kind]())

    expected = few_steps(make, batches)
    with two_devices.scope():
        found = few_steps(make, batches)
    check_same_steps(found, expected, atol=1e-4)


def test_other_cells_have_no_weightings():
    model, _ = built("lstm")
    assert not model.has_memory
    with pytest.raises(ValueError, match="Received: cell=LSTMCell"):
        model.weightings(batch_of(2)[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_dim": 0}, "input_dim=0"),
        ({"output_dim": 1.5}, "output_dim=1.5"),
        ({"cell": "lstm"}, "cell='lstm'"),
        ({"cell": keras.layers.LSTMCell}, "cell=<class"),
    ],
)
def test_wrong_arguments(changes, message):
    given = {"input_dim": 3, "output_dim": 2, "cell": CELLS["lstm"]()}
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        BinaryRNN(**{**given, **changes})


@pytest.mark.slow
def test_a_memory_machine_learns_to_copy(new_seed):
    task = CopySequence(length=(1, 3), bits=4)
    cell = NeuralTuringMachine(32, slots=8, slot_dim=8, controller_units=32)
    model = BinaryRNN(task.input_dim, task.output_dim, cell)
    model.compile(keras.optimizers.Adam(0.01), clip_norm=1.0)
    batches = binary_batches(task, batch_size=16, seed=new_seed)
    model.fit(batches, steps_per_epoch=900, verbose=0, shuffle=False)
    transducer = Transducer(model, VectorPreprocessor(task.input_dim))
    examples = {"": binary_examples(task, 200, new_seed)}
    scores = BitErrors(transducer.predictor(), examples).scores()
    assert scores["error"] < 0.06
