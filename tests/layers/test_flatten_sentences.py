import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import FlattenSentences

IDS = np.array(
    [
        [[4, 5, 0], [0, 0, 0], [6, 0, 0]],
        [[7, 0, 0], [8, 9, 4], [5, 6, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]
)


def test_words_follow_each_other():
    joined = ops.convert_to_numpy(FlattenSentences()(IDS))
    assert joined.tolist() == [
        [4, 5, 6, 0, 0, 0],
        [7, 8, 9, 4, 5, 6],
        [0, 0, 0, 0, 0, 0],
    ]


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 0, 4), (0, 3, 4)])
def test_nothing_to_join(shape):
    joined = FlattenSentences()(np.zeros(shape, int))
    assert joined.shape[0] == shape[0]
    assert not ops.convert_to_numpy(joined).any()


def test_weights_go_back_to_their_sentences():
    weights = np.array(
        [
            [0.1, 0.3, 0.6, 0, 0, 0],
            [0.5, 0.1, 0.2, 0.1, 0.1, 0],
            [0, 0, 0, 0, 0, 0],
        ],
        "float32",
    )
    sentences, words = FlattenSentences().unflatten_weights(weights, IDS)
    np.testing.assert_allclose(
        sentences, [[0.4, 0, 0.6], [0.5, 0.4, 0.1], [0, 0, 0]], atol=1e-6
    )
    expected = np.zeros((3, 3, 3))
    expected[0, 0, :2] = 0.25, 0.75
    expected[0, 2, 0] = expected[1, 0, 0] = expected[1, 2, 0] = 1
    expected[1, 1] = 0.25, 0.5, 0.25
    np.testing.assert_allclose(words, expected, atol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of TensorFlow"
)
def test_xla_joins_to_a_size_that_no_value_decides():
    import tensorflow as tf

    ids = np.array([[[4, 0], [7, 8]], [[0, 0], [5, 0]]], "int32")
    spec = [tf.TensorSpec((None, None, None), "int32")]
    join = tf.function(
        FlattenSentences(), jit_compile=True, input_signature=spec
    )
    joined = join(ids)

    np.testing.assert_array_equal(joined, [[4, 7, 8, 0], [5, 0, 0, 0]])
    np.testing.assert_array_equal(FlattenSentences()(ids), joined[:, :3])


def test_shapes():
    assert FlattenSentences().compute_output_shape((2, 3, 4)) == (2, None)
