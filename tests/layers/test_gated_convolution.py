import keras
import numpy as np
import pytest

from kseq.layers import GatedConvolution
from kseq.user_error import ArgumentError
from tests.layers.arrays import normal, numpy_of, randomize


def layer_of(units=3, kernel_size=4, depth=2, **options):
    layer = GatedConvolution(units, kernel_size, **options)
    layer.build((None, None, depth))
    return randomize(layer, 0.5)


def by_definition(layer, inputs):
    """Input by input, in NumPy, of (B, T, D)."""
    direction = numpy_of(layer.direction)
    columns = direction / np.linalg.norm(direction, axis=0)
    weights = columns * numpy_of(layer.scale)
    size, depth = layer.kernel_size, inputs.shape[-1]
    first = size - 1 if layer.causal else (size - 1) // 2
    batch, time, _ = inputs.shape
    both = np.tile(numpy_of(layer.bias), (batch, time, 1))
    for t in range(time):
        for i in range(size):
            if 0 <= t - first + i < time:
                rows = weights[i * depth : (i + 1) * depth]
                both[:, t] += inputs[:, t - first + i] @ rows
    linear, gate = np.split(both, 2, axis=-1)
    return linear / (1 + np.exp(-gate))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4])
def test_values(seed, kernel_size, causal):
    layer = layer_of(kernel_size=kernel_size, causal=causal)
    for time in (1, 2, 6):
        inputs = normal(3, time, 2)
        outputs = numpy_of(layer(inputs))
        assert outputs.shape == layer.compute_output_shape(inputs.shape)
        expected = by_definition(layer, inputs)
        np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_half_of_a_wide_kernel_is_beyond_the_ends(seed):
    layer, inputs = layer_of(kernel_size=9), normal(2, 3, 2)
    expected = by_definition(layer, inputs)
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


def test_the_scale_is_the_length_of_a_column(seed):
    layer = layer_of()
    lengths = np.linalg.norm(numpy_of(layer.kernel()), axis=0)
    np.testing.assert_allclose(lengths, abs(numpy_of(layer.scale)), rtol=1e-5)


def test_small_inputs_keep_their_variance(seed):
    layer = GatedConvolution(256, 3)
    outputs = numpy_of(layer(normal(8, 64, 256) / 10))
    assert outputs[:, 1:-1].std() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("kernel_size", [1, 2, 4])
def test_steps_equal_the_whole_sequence(seed, kernel_size):
    layer = layer_of(kernel_size=kernel_size, causal=True)
    inputs = normal(3, 6, 2)
    before = np.zeros((3, kernel_size - 1, 2), "float32")
    outputs = []
    for first, last in ((0, 1), (1, 2), (2, 5), (5, 6)):
        part = inputs[:, first:last]
        output, before = layer(part, before=before, kernel=layer.kernel())
        assert before.shape == (3, kernel_size - 1, 2)
        outputs.append(numpy_of(output))
    outputs = np.concatenate(outputs, axis=1)
    np.testing.assert_allclose(outputs, layer(inputs), atol=1e-6)


def test_padding_changes_nothing(seed):
    """Equal to the bit, whatever is at padding."""
    layer, inputs = layer_of(), normal(2, 7, 2)
    mask = np.arange(7) < np.array([[4], [7]])
    other = np.where(mask[..., None], inputs, normal(2, 7, 2))
    outputs = numpy_of(layer(inputs, inputs_mask=mask))
    changed = numpy_of(layer(other, inputs_mask=mask))
    np.testing.assert_array_equal(changed[mask], outputs[mask])
    alone = by_definition(layer, inputs[:1, :4])
    np.testing.assert_allclose(outputs[:1, :4], alone, atol=1e-5)


def test_the_future_is_not_read(seed):
    layer, inputs = layer_of(causal=True), normal(2, 7, 2)
    changed = np.concatenate([inputs[:, :3], normal(2, 4, 2)], axis=1)
    outputs, others = numpy_of(layer(inputs)), numpy_of(layer(changed))
    np.testing.assert_array_equal(others[:, :3], outputs[:, :3])
    assert (others[:, 3] != outputs[:, 3]).any()


def test_no_rows():
    assert layer_of()(np.zeros((0, 5, 2))).shape == (0, 5, 3)


def test_all_dropped_is_finite():
    layer = layer_of(dropout=1.0)
    layer.direction.assign(np.zeros(layer.direction.shape))
    outputs = layer(np.ones((1, 5, 2)), training=True)
    assert np.isfinite(keras.ops.convert_to_numpy(outputs)).all()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None, 10**12, "3"])
@pytest.mark.parametrize("name", ["units", "kernel_size"])
def test_sizes_are_checked(name, wrong):
    arguments = {"units": 3, "kernel_size": 3, name: wrong}
    with pytest.raises(ArgumentError, match=f"{name} must be an integer"):
        GatedConvolution(**arguments)


def test_only_a_causal_one_has_inputs_before_the_first():
    with pytest.raises(ValueError, match="Only a causal convolution"):
        layer_of()(np.ones((1, 5, 2)), before=np.ones((1, 3, 2)))
