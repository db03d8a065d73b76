import keras
import numpy as np
import pytest

from kseq.layers import HierarchicalEncoder
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize

CELLS = ["lstm", "gru", "tanh"]
# Three turns; one and two; none.
LENGTHS = np.array([[4, 2, 1], [3, 4, 0], [0, 0, 0]])
MASK = np.arange(4) < LENGTHS[..., None]


def built(**arguments):
    layer = HierarchicalEncoder(**{"units": 6, **arguments})
    layer.build((None, None, None, 5))
    return randomize(layer, 0.5)


@pytest.fixture(params=CELLS)
def cell(request, seed):
    return request.param


def joined(states):
    """The states of two directions: hidden, and cell of an LSTM."""
    first, second = np.split(np.stack(states), 2)
    return np.concatenate([first, second], axis=-1)


# The contract.


@pytest.mark.parametrize(
    ("cell", "gates", "biases"),
    [("lstm", 4, (12,)), ("gru", 3, (2, 9)), ("tanh", 1, (3,))],
)
def test_shapes_and_weights(cell, gates, biases):
    layer = HierarchicalEncoder(6, cell)
    memory, mask, [states] = layer(normal(3, 3, 4, 5), MASK)

    assert memory.shape == (3, 12, 12)
    assert mask.shape == (3, 3, 4)
    assert [state.shape for state in states] == [(3, 6)] * len(states)
    assert len(states) == (2 if cell == "lstm" else 1)
    assert layer.compute_output_shape((3, 3, 4, 5)) == (
        (3, 12, 12),
        (3, 3, 4),
        [[state.shape for state in states]],
    )
    shapes = [weight.shape for weight in layer.weights]
    assert shapes[::6] == [(5, 3 * gates), (6, 3 * gates)]
    assert shapes[1:3] == shapes[7:9] == [(3, 3 * gates), biases]
    assert shapes[3:6] + shapes[9:] == shapes[:3] + shapes[6:9]


def test_symbolic_shapes():
    source = keras.Input((None, None, 5))
    source_mask = keras.Input((None, None), dtype="bool")
    memory, mask, [states] = built(cell="gru")(source, source_mask)

    assert memory.shape == (None, None, 12)
    assert mask.shape == (None, None, None)
    assert [state.shape for state in states] == [(None, 6)]


# Values.


def test_turn_by_turn_by_hand(cell):
    """The layers of Keras on one turn after the other, without padding."""
    layer, source = built(cell=cell), normal(3, 3, 4, 5)
    memory, mask, [states] = layer(source, MASK)

    np.testing.assert_array_equal(mask, MASK)
    for row, lengths in enumerate(LENGTHS[:2]):
        words, turns = [], []
        for turn, length in zip(source[row], lengths, strict=True):
            if length == 0:
                continue
            x, *last = layer.words(turn[None, :length])
            words.append(x[0])
            turns.append(numpy_of(joined(last)[0][0]))
        y, *last = layer.turns(np.stack(turns)[None])
        expected = [
            np.concatenate([x, np.repeat(y[:, i], len(x), axis=0)], axis=-1)
            for i, x in enumerate(words)
        ]
        np.testing.assert_allclose(
            numpy_of(memory)[row][MASK[row].ravel()],
            np.concatenate(expected),
            atol=1e-5,
        )
        for state, value in zip(states, joined(last), strict=True):
            np.testing.assert_allclose(state[row], value[0], atol=1e-5)


# Influence.


@pytest.mark.parametrize(
    ("cell", "turns", "words"),
    [
        *(("lstm", 0, 2), ("lstm", 2, 0), ("lstm", 1, 3)),
        *(("gru", 1, 3), ("tanh", 1, 3)),
    ],
)
def test_padding_changes_nothing(seed, cell, turns, words):
    layer, source = built(cell=cell), normal(3, 3, 4, 5)
    memory, _, [states] = layer(source, MASK)
    longer = normal(3, 3 + turns, 4 + words, 5)
    longer[:, :3, :4] = source
    more = [(0, 0), (0, turns), (0, words)]
    padded, mask, [longer_states] = layer(longer, np.pad(MASK, more))

    padded = numpy_of(padded).reshape(3, 3 + turns, 4 + words, 12)
    np.testing.assert_allclose(
        padded[:, :3, :4], numpy_of(memory).reshape(3, 3, 4, 12), atol=1e-6
    )
    assert not padded[~np.array(mask)].any()
    for one, other in zip(states, longer_states, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_every_word_counts_and_no_padding(cell):
    """Each row changes a different word of the same dialogue."""
    layer, source = built(cell=cell), normal(1, 3, 4, 5)
    changes = np.eye(13, 12).reshape(13, 3, 4, 1)
    mask = np.repeat(MASK[:1], 13, axis=0)
    memory, _, [states] = layer(source + changes, mask)

    for output in (memory, states[0]):
        output = numpy_of(output)
        change = np.abs(output[:12] - output[12]).reshape(12, -1)
        differs = change.max(axis=1) > 1e-5
        np.testing.assert_array_equal(differs, MASK[0].ravel())


def test_each_turn_knows_the_others(seed):
    layer, source = built(), normal(1, 3, 4, 5)
    changed = source.copy()
    changed[:, 1] += 1
    one, other = (layer(x, MASK[:1])[0] for x in (source, changed))
    differs = numpy_of(one) != numpy_of(other)

    words, turns = differs[0, MASK[0].ravel()].reshape(7, 2, 6).any(-1).T
    np.testing.assert_array_equal(words, [0, 0, 0, 0, 1, 1, 0])
    assert turns.all()


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_read(seed, dtype):
    memory, _, [states] = built(dtype=dtype)(normal(3, 3, 4, 5), MASK)

    for output in (memory, *states):
        assert keras.ops.dtype(output) == dtype.removeprefix("mixed_")
        assert np.isfinite(numpy_of(output)).all()
        assert not numpy_of(output)[2].any() and numpy_of(output)[:2].any()
    assert not numpy_of(memory)[~MASK.reshape(3, 12)].any()


def test_dropout_is_for_training_alone(seed):
    layer, source = built(dropout=0.5), normal(3, 3, 4, 5)
    memory, *_ = layer(source, MASK)
    dropped, *_ = layer(source, MASK, training=True)

    assert (numpy_of(memory) != numpy_of(dropped)).any()
    np.testing.assert_array_equal(layer(source, MASK)[0], memory)


# Errors.


@pytest.mark.parametrize(
    "arguments", [{"units": 5}, {"units": 0}, {"cell": "rnn"}]
)
def test_arguments_that_do_not_fit(arguments):
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        HierarchicalEncoder(**{"units": 6, **arguments})
