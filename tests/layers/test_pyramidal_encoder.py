import keras
import numpy as np
import pytest

from kseq.layers import PyramidalEncoder, SpecAugment
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize
from tests.slow import slow

FRONT_ENDS = ["none", "convolution"]


def built(front_end, **arguments):
    arguments = {"units": 6, "num_layers": 2, **arguments}
    layer = PyramidalEncoder(front_end=front_end, **arguments)
    layer.build((None, None, 5))
    return randomize(layer, 0.5)


@pytest.fixture(params=FRONT_ENDS)
def front_end(request, seed):
    return request.param


# The contract.


def test_shapes_and_weights():
    layer = PyramidalEncoder(6, num_layers=3, front_end="convolution")
    source, mask = np.ones((2, 21, 5)), np.ones((2, 21), bool)
    memory, memory_mask, states = layer(source, mask)

    assert memory.shape == (2, 2, 6)
    assert memory_mask.shape == (2, 2)
    assert states == []
    assert layer.compute_output_shape((2, 21, 5)) == ((2, 2, 6), (2, 2), [])
    assert layer.compute_output_shape((2, None, 5))[1] == (2, None)
    forward = [f"recurrent_{i}/forward_lstm" for i in range(3)]
    shapes = {
        weight.path.split("/", 1)[1]: weight.shape for weight in layer.weights
    }
    assert len(shapes) == 2 * 2 + 2 + 3 * 2 * 3 + 2
    assert shapes["convolution_1/kernel"] == (3, 3, 32, 32)
    assert shapes["projection/kernel"] == (2 * 32, 6)
    found = [
        shape
        for path, shape in shapes.items()
        if path.startswith(tuple(forward)) and path.endswith("/kernel")
    ]
    assert found == [(6, 12), (12, 12), (12, 12)]


@pytest.mark.parametrize("time", [1, 7, 8])
def test_time_is_halved_and_rounded_up(front_end, time):
    layer = built(front_end, num_layers=3)
    source, mask = normal(2, time, 5), np.ones((2, time), bool)
    memory, memory_mask, _ = layer(source, mask)
    expected = layer.compute_output_shape(source.shape)

    assert (memory.shape, memory_mask.shape, []) == expected


def test_symbolic_shapes(front_end):
    source, mask = keras.Input((None, 5)), keras.Input((None,), dtype="bool")
    memory, memory_mask, _ = built(front_end)(source, mask)

    assert (memory.shape, memory_mask.shape) == ((None, None, 6), (None, None))


# Values.


def test_one_layer_is_that_of_keras(seed):
    layer = built("none", num_layers=1)
    reference = keras.layers.Bidirectional(
        keras.layers.LSTM(3, return_sequences=True)
    )
    reference.build((None, None, 5))
    reference.set_weights(layer.recurrent[0].get_weights())
    source = normal(2, 7, 5)
    memory, *_ = layer(source, np.ones((2, 7), bool))

    np.testing.assert_allclose(memory, layer.norm(reference(source)), atol=1e-6)


def test_layers_read_pairs(seed):
    """The second layer, given the pairs of the first one by hand."""
    layer = built("none")
    source, mask = normal(1, 5, 5), np.ones((1, 5), bool)
    x = numpy_of(layer.recurrent[0](source))[0]
    pairs = [
        np.concatenate([x[0], x[1]]),
        np.concatenate([x[2], x[3]]),
        np.concatenate([x[4], np.zeros(6)]),
    ]
    expected = layer.norm(layer.recurrent[1](np.stack(pairs)[None]))

    np.testing.assert_allclose(layer(source, mask)[0], expected, atol=1e-6)


def test_convolutions_by_hand(seed):
    layer = built("convolution", num_layers=1)
    source, mask = normal(1, 6, 5), np.arange(6)[None] < 5
    x = np.where(mask[..., None], source, 0)[0, :, :, None]
    for kernel, bias in (each.get_weights() for each in layer.convolutions):
        x = np.pad(x, [(1, 1), (1, 1), (0, 0)])
        time, size = ((n - 1) // 2 for n in x.shape[:2])
        outputs = np.zeros((time, size, 32))
        for i, j in np.ndindex(time, size):
            patch = x[2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            outputs[i, j] = np.tensordot(patch, kernel, axes=3) + bias
        mask = mask[:, ::2]
        x = np.maximum(outputs, 0) * mask[0, :, None, None]
    x = layer.projection(x.reshape(1, len(x), -1))
    expected = layer.norm(layer.recurrent[0](x))

    found, found_mask, _ = layer(source, np.arange(6)[None] < 5)
    np.testing.assert_array_equal(found_mask, [[True, True]])
    np.testing.assert_allclose(found, expected, atol=1e-4)


# Influence.


@pytest.mark.parametrize(
    ("time", "more"),
    [
        *((6, 1), (7, 5)),
        *(slow(6, 2), slow(6, 5), slow(7, 1), slow(7, 2)),
    ],
)
def test_padding_changes_nothing(front_end, time, more):
    layer, source = built(front_end, num_layers=3), normal(2, time, 5)
    lengths = np.array([[time], [time - 3]])
    padded = np.concatenate([source, normal(2, more, 5)], axis=1)
    memory, mask, _ = layer(source, np.arange(time) < lengths)
    longer, longer_mask, _ = layer(padded, np.arange(time + more) < lengths)
    length = memory.shape[1]

    # A product of more rows may be rounded differently.
    np.testing.assert_allclose(longer[:, :length], memory, atol=1e-6)
    np.testing.assert_array_equal(longer_mask[:, :length], mask)
    assert not numpy_of(longer)[:, length:].any()
    assert not np.array(longer_mask)[:, length:].any()


def test_every_frame_counts(front_end):
    layer, source = built(front_end), normal(1, 7, 5)
    changed = source + np.eye(8, 7)[:, :, None]  # one frame in each row
    memory = numpy_of(layer(changed, np.ones((8, 7), bool))[0])

    assert (memory[:7] != memory[7:]).any(axis=(1, 2)).all()


def test_the_source_is_augmented_in_training_alone(seed):
    augment = SpecAugment(time_masks=0, feature_masks=1, stretch=0.5, seed=3)
    layer = built("none", augment=augment, dtype="mixed_float16")
    plain = built("none", dtype="mixed_float16")
    plain.set_weights([x.numpy() for x in layer.trainable_weights])
    source, mask = normal(3, 8, 5), np.arange(8) < [[8], [5], [0]]
    augmented = type(augment).from_config(augment.get_config())(
        source, mask, training=True
    )
    memory, memory_mask, _ = layer(source, mask, training=True)
    expected, expected_mask, _ = plain(*augmented)

    assert layer.augment is not augment
    assert layer.augment.dtype_policy.name == "mixed_float16"
    assert memory.shape == (3, 6, 6)
    np.testing.assert_array_equal(memory_mask, expected_mask)
    np.testing.assert_allclose(memory, expected, atol=0.01)
    np.testing.assert_array_equal(
        layer(source, mask)[0], plain(source, mask)[0]
    )


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_read(front_end, dtype):
    layer = built(front_end, dtype=dtype)
    mask = np.array([[False] * 7, [True] * 7])
    memory, memory_mask, _ = layer(normal(2, 7, 5), mask)

    assert keras.ops.dtype(memory) == dtype.removeprefix("mixed_")
    assert not numpy_of(memory)[0].any() and not np.array(memory_mask)[0].any()
    assert np.isfinite(numpy_of(memory)).all()
    assert np.array(memory_mask)[1].all()


# Errors.


@pytest.mark.parametrize(
    "arguments",
    [{"units": 5}, {"units": 0}, {"num_layers": 0}, {"front_end": "vgg"}],
)
def test_arguments_that_do_not_fit(arguments):
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        PyramidalEncoder(**{"units": 6, **arguments})
