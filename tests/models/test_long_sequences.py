"""Training on batches of which some are long, in one data set."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.layers import multi_head_attention
from kseq.models import TransformerLM, step_function
from tests.models.test_exact_model import assert_all_close

VOCAB, LONG = 9, 1024


def rows(length):
    ids = np.random.default_rng(length).integers(5, VOCAB, (1, length + 1))
    ids = ids.astype("int32")
    weights = np.ones((1, length), "float32")
    return {"target_ids": ids[:, :-1]}, ids[:, 1:], weights


def data_of(*lengths):
    return tf.data.Dataset.from_generator(
        lambda: map(rows, lengths),
        output_signature=(
            {"target_ids": tf.TensorSpec((None, None), tf.int32)},
            tf.TensorSpec((None, None), tf.int32),
            tf.TensorSpec((None, None), tf.float32),
        ),
    ).apply(tf.data.experimental.assert_cardinality(len(lengths)))


def trained(*lengths):
    """Logs and weights after a step for each length, from the same start."""
    keras.utils.set_random_seed(1)
    model = TransformerLM(
        VOCAB, num_layers=1, model_dim=8, ffn_dim=8, num_heads=2
    )
    model.compile(keras.optimizers.SGD(0.1))
    logs = model.fit(data_of(*lengths), verbose=0, shuffle=False).history
    return logs, model.get_weights()


@pytest.fixture
def in_blocks(monkeypatch):
    """The layers that were traced with attention in blocks."""
    calls, attention = [], multi_head_attention.blockwise_attention

    def counting(*arguments, **options):
        calls.append(arguments)
        return attention(*arguments, **options)

    monkeypatch.setattr(multi_head_attention, "blockwise_attention", counting)
    return calls


def test_long_batches_are_trained_on_in_blocks(in_blocks, monkeypatch):
    logs, weights = trained(5, LONG)
    assert len(in_blocks) == 1

    monkeypatch.setattr(step_function, "is_long", lambda *lengths: False)
    expected_logs, expected = trained(5, LONG)
    assert len(in_blocks) == 1
    assert_all_close(weights, expected, atol=1e-5)
    np.testing.assert_allclose(logs["loss"], expected_logs["loss"], rtol=1e-5)
