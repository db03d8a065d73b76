import numpy as np
import pytest

from kseq.layers import PieceEmbedding
from tests.layers.arrays import numpy_of


def test_is_a_table_without_training(seed):
    layer = PieceEmbedding(30, 8, dropout=0.5, piece_dropout=0.5)
    ids = np.array([[4, 5], [29, 0]])
    layer.build(ids.shape)
    table = numpy_of(layer.embedding.embeddings)
    np.testing.assert_array_equal(numpy_of(layer(ids)), table[ids])
    assert layer.compute_output_shape((2, 2)) == (2, 2, 8)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_drops_whole_pieces_and_scales_the_others(seed, dtype):
    layer = PieceEmbedding(30, 8, piece_dropout=0.25, dtype=dtype)
    ids = np.full((100, 100), 7)
    whole, found = numpy_of(layer(ids)), numpy_of(layer(ids, training=True))
    is_kept = found.any(axis=-1)

    assert 0.72 < is_kept.mean() < 0.78
    np.testing.assert_allclose(found[is_kept], whole[is_kept] / 0.75, rtol=0.02)


def test_drops_features(seed):
    layer = PieceEmbedding(30, 8, dropout=0.5)
    found = numpy_of(layer(np.full((100, 100), 7), training=True))
    assert 0.45 < (found == 0).mean() < 0.55


def test_config():
    layer = PieceEmbedding(30, 8, dropout=0.5, piece_dropout=0.25)
    again = PieceEmbedding.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
