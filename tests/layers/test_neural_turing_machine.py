import keras
import numpy as np
import pytest

from kseq.layers import NeuralTuringMachine
from kseq.ops import content_weights
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize
from tests.layers.numpy_turing_machine import turing_machine
from tests.slow import slow

SIZES = {"units": 3, "slots": 6, "slot_dim": 4, "controller_units": 5}
HEADS = {"read_heads": 2, "write_heads": 3, "shift_range": 2}
RANDOM = {"initial_memory": "random"}


def built(**settings):
    cell = NeuralTuringMachine(**{**SIZES, **settings})
    cell.build((None, 7))
    return randomize(cell)


def steps(cell, inputs):
    """Outputs, and the states after each step."""
    states, outputs, found = cell.get_initial_state(len(inputs)), [], []
    for x in np.swapaxes(inputs, 0, 1):
        output, states = cell(x, states)
        outputs.append(numpy_of(output))
        found.append(states)
    return np.stack(outputs, axis=1), found


@pytest.mark.parametrize("controller", ["lstm", "dense"])
@pytest.mark.parametrize(
    "heads", [{}, HEADS, RANDOM], ids=["one head", "heads", "random memory"]
)
def test_agrees_with_the_paper_in_numpy(seed, controller, heads):
    cell, inputs = built(controller=controller, **heads), normal(2, 9, 7)
    outputs, states = steps(cell, inputs)
    for row, sequence in enumerate(inputs):
        expected, weightings, memories = turing_machine(cell, sequence)
        np.testing.assert_allclose(outputs[row], expected, atol=1e-4)
        for t, state in enumerate(states):
            read, written = (numpy_of(x)[row] for x in cell.weights_of(state))
            found = np.concatenate([read, written])
            np.testing.assert_allclose(found, weightings[t], atol=1e-4)
            memory = numpy_of(state[1])[row].reshape(6, 4)
            np.testing.assert_allclose(memory, memories[t], atol=1e-4)


@pytest.mark.parametrize("controller", ["lstm", "dense"])
def test_a_loop_of_keras_equals_the_steps(seed, controller):
    cell, inputs = built(controller=controller), normal(2, 5, 7)
    layer = keras.layers.RNN(cell, return_sequences=True)
    expected, _ = steps(cell, inputs)
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


def test_a_head_finds_an_empty_slot_of_a_random_memory_by_content(seed):
    """All slots of a constant one are alike to it."""
    found = {}
    for kind in ("constant", "random"):
        cell = NeuralTuringMachine(**SIZES, initial_memory=kind)
        cell.build((None, 7))
        memory = numpy_of(cell.get_initial_state(2)[1]).reshape(2, 6, 4)
        np.testing.assert_array_equal(memory[0], memory[1])
        strengths = np.full((2, 6), 50.0, "float32")
        found[kind] = numpy_of(content_weights(memory, memory, strengths))
    np.testing.assert_allclose(found["constant"], np.full((2, 6, 6), 1 / 6))
    np.testing.assert_allclose(found["random"], [np.eye(6)] * 2, atol=0.05)


def test_a_random_memory_is_kept_and_not_trained(seed, tmp_path):
    cell = NeuralTuringMachine(**SIZES, **RANDOM)
    model = keras.Sequential([keras.Input((None, 7)), keras.layers.RNN(cell)])
    before = numpy_of(cell.first_memory)
    model.compile("adam", "mse")
    model.fit(normal(4, 3, 7), normal(4, 3), verbose=0)
    np.testing.assert_array_equal(cell.first_memory, before)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.layers[0].cell.first_memory, before)
    inputs = normal(2, 3, 7)
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def test_an_lstm_begins_by_forgetting(seed):
    cell = NeuralTuringMachine(**SIZES)
    cell.build((None, 7))
    cell.projection.kernel.assign(np.zeros(cell.projection.kernel.shape))
    states = cell.get_initial_state(2)
    states[-1] = np.ones((2, 5))
    _, states = cell(np.zeros((2, 7)), states)
    kept = 1 / (1 + np.exp(1))
    np.testing.assert_allclose(states[-1], np.full((2, 5), kept), rtol=1e-5)


# All four combinations agree with the paper above.
@pytest.mark.parametrize(
    ("controller", "heads"),
    [
        pytest.param("lstm", HEADS, id="lstm-heads"),
        pytest.param("dense", {}, id="dense-one head"),
        slow("lstm", {}, id="lstm-one head"),
        slow("dense", HEADS, id="dense-heads"),
    ],
)
def test_a_head_that_idles_stays_where_it_is(seed, controller, heads):
    """Where it is not told to shift, nor to look for a key."""
    cell = NeuralTuringMachine(**{**SIZES, **heads}, controller=controller)
    cell.build((None, 7))
    cell.addressing.kernel.assign(np.zeros(cell.addressing.kernel.shape))
    bias = numpy_of(cell.addressing.bias).reshape(cell.heads, -1)
    bias[:, SIZES["slot_dim"] + 1] = -20  # the gate: by location
    bias[:, SIZES["slot_dim"] + 3 + cell.shift_range] = 4.0
    cell.addressing.bias.assign(bias.ravel())
    _, states = steps(cell, normal(2, 20, 7))
    for weights in cell.weights_of(states[-1]):
        assert (numpy_of(weights).max(axis=-1) > 0.99).all()


def test_masked_steps_change_nothing(seed):
    cell, inputs = built(), normal(1, 5, 7)
    layer = keras.layers.RNN(cell, return_state=True)
    mask = np.array([[True, False, True, True, False]])
    found = layer(inputs, mask=mask)
    for one, other in zip(found, layer(inputs[:, [0, 2, 3]]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("policy", [*HALF_POLICIES, "float16"])
def test_weightings_of_half_precision_are_distributions(seed, policy):
    cell = built(dtype=policy)
    whole = built()
    whole.set_weights([numpy_of(weight) for weight in cell.weights])
    inputs = normal(2, 20, 7)
    _, states = steps(cell, inputs)
    for state in states:
        for weights in cell.weights_of(state):
            weights = keras.ops.convert_to_numpy(weights)
            assert weights.dtype == "float32"
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
            assert (weights >= 0).all()
    outputs, _ = steps(cell, inputs[:, :1])
    np.testing.assert_allclose(
        outputs, steps(whole, inputs[:, :1])[0], atol=0.1
    )


def test_values_stay_finite_at_the_limits(seed):
    cell = built()
    for weight in cell.trainable_weights:
        weight.assign(1e4 * numpy_of(weight))
    outputs, states = steps(cell, 1e4 * normal(2, 20, 7))
    assert np.abs(outputs).max() <= 20
    for values in keras.tree.flatten(states):
        assert np.isfinite(numpy_of(values)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"units": 0}, "units=0"),
        ({"slots": 2}, "shift_range=1, slots=2"),
        ({"slot_dim": 1.5}, "slot_dim=1.5"),
        ({"read_heads": 0}, "read_heads=0"),
        ({"write_heads": 0}, "write_heads=0"),
        ({"controller": "gru"}, "controller='gru'"),
        ({"controller_units": 0}, "controller_units=0"),
        ({"shift_range": -1}, "shift_range=-1"),
        ({"clip": float("nan")}, "clip=nan"),
        ({"clip": 0}, "clip=0"),
        ({"initial_memory": "learned"}, "initial_memory='learned'"),
    ],
)
def test_wrong_arguments(settings, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        NeuralTuringMachine(**{**SIZES, **settings})
