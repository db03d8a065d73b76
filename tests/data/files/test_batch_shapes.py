import numpy as np
import pytest
import tensorflow as tf

from kseq.data.files.batch_shapes import (
    MAX_SHAPES,
    BatchShapes,
    padded_lengths,
    shapes_wanted,
    whole_rows,
)
from kseq.user_error import ArgumentError

RNG = np.random.default_rng()
COUNT = 4000


def translated(sources):
    """Source lengths and those of translations, which are similar."""
    targets = sources * RNG.normal(1, 0.1, sources.shape)
    return np.stack([sources, targets], axis=1).clip(1, 400).astype(int)


DISTRIBUTIONS = {
    "normal": translated(RNG.normal(30, 10, COUNT)),
    "short": translated(RNG.normal(10, 3, COUNT)),
    "long tail": translated(RNG.lognormal(3, 0.5, COUNT)),
    "bimodal": translated(
        np.where(
            RNG.random(COUNT) < 0.3,
            RNG.normal(200, 20, COUNT),
            RNG.normal(12, 4, COUNT),
        )
    ),
    "uniform": translated(RNG.uniform(5, 100, COUNT)),
    "captions": np.stack(
        [np.full(COUNT, 49), RNG.normal(13, 4, COUNT).clip(1)], axis=1
    ).astype(int),
    "constant": np.full((COUNT, 2), [17, 23]),
    "two points": RNG.permutation([[4, 90]] * COUNT + [[90, 4]] * COUNT),
    "one pair": np.array([[1, 1]]),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_little_is_padding_in_few_shapes(name):
    lengths = DISTRIBUTIONS[name]
    shapes = BatchShapes(lengths, max_shapes=MAX_SHAPES)
    padded = shapes(tf.constant(lengths, tf.int64)).numpy()
    assert (padded >= lengths).all()
    assert shapes.padding == pytest.approx(1 - lengths.sum() / padded.sum())
    assert shapes.padding < 0.12
    assert len({*map(tuple, padded.tolist())}) == len(shapes.lengths)
    assert len(shapes.lengths) <= MAX_SHAPES
    assert (shapes.lengths.max(axis=0) == lengths.max(axis=0)).all()


@pytest.mark.parametrize("name", ["constant", "two points", "one pair"])
def test_no_more_shapes_than_needed(name):
    lengths = DISTRIBUTIONS[name]
    shapes = BatchShapes(lengths, max_shapes=MAX_SHAPES)
    assert shapes.padding == 0
    assert len(shapes.lengths) == len(np.unique(lengths, axis=0))


def test_the_smallest_shape_that_fits():
    shapes = BatchShapes([(4, 4), (40, 4), (4, 40), (40, 40)], max_shapes=4)
    asked = tf.constant([(1, 1), (4, 5), (5, 4), (40, 5), (5, 40)], tf.int64)
    expected = [(4, 4), (4, 40), (40, 4), (40, 40), (40, 40)]
    assert shapes(asked).numpy().tolist() == [*map(list, expected)]


def test_what_is_longer_is_padded_as_without_shapes():
    shapes = BatchShapes([(4, 4), (30, 30)], max_shapes=2)
    asked = tf.constant([(31, 2), (2, 65)], tf.int64)
    np.testing.assert_array_equal(shapes(asked), padded_lengths(asked))
    assert shapes.number_of(asked).numpy().tolist() == [2, 2]


def test_counts_are_of_examples_in_any_order():
    lengths = DISTRIBUTIONS["long tail"]
    expected = BatchShapes(lengths, max_shapes=5)
    few, counts = np.unique(lengths, axis=0, return_counts=True)
    order = RNG.permutation(len(few))
    again = BatchShapes(few[order], counts[order], max_shapes=5)
    np.testing.assert_array_equal(again.lengths, expected.lengths)
    assert again.padding == expected.padding


def test_no_single_exchange_is_better():
    lengths = RNG.integers(1, 9, (200, 2)) * 4  # which are not rounded
    shapes = BatchShapes(lengths, max_shapes=3)

    def positions(chosen):
        fits = (lengths[:, None] <= chosen).all(axis=2)
        sizes = np.where(fits, chosen.sum(axis=1), np.inf)
        return sizes.min(axis=1).sum()

    least = positions(shapes.lengths)
    for place in range(3):
        for other in np.ndindex(8, 8):
            changed = shapes.lengths.copy()
            changed[place] = 4 * np.array(other) + 4
            assert positions(changed) >= least


def test_tables_have_the_product_of_their_lengths():
    lengths = RNG.integers(1, 30, (COUNT, 2))
    shapes = BatchShapes(lengths, max_shapes=8, size=np.prod)
    padded = shapes(tf.constant(lengths)).numpy()
    positions = lengths.prod(axis=1).sum()
    expected = 1 - positions / padded.prod(axis=1).sum()
    assert shapes.padding == pytest.approx(expected)


def test_shapes_are_wanted_where_there_is_a_gpu(monkeypatch):
    assert shapes_wanted("auto") is None
    gpu = [tf.config.LogicalDevice("/device:GPU:0", "GPU")]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpu)
    assert shapes_wanted("auto") == MAX_SHAPES
    assert shapes_wanted(None) is None
    assert shapes_wanted(3) == 3


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "many", 2**40])
def test_absurd_numbers_of_shapes_are_refused(value):
    with pytest.raises(ArgumentError, match="max_shapes must be an integer"):
        shapes_wanted(value)


@pytest.mark.parametrize(
    "rows, expected",
    [
        *[(1, 1), (7, 7), (9, 8), (13, 12), (15, 14), (22, 20), (31, 28)],
        *[(63, 56), (255, 248), (260, 256), (1000, 992)],
    ],
)
def test_rows_fit_devices_and_tensor_cores(rows, expected):
    assert whole_rows(np.array([rows])).tolist() == [expected]


def test_their_number_is_logged(caplog):
    caplog.set_level("INFO")
    BatchShapes([(4, 4)], max_shapes=3).log()
    BatchShapes([(4, 4), (8, 8), (6, 6)], max_shapes=2).log()
    first, second = caplog.messages
    assert first == "1 batch shape, 0.0 % padding"
    assert second == "2 batch shapes, 10.0 % padding"
