import shutil

import numpy as np
import pytest
import tensorflow as tf

from kseq.loading import load_model
from kseq.models import Transformer
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import write_checkpoint
from kseq.user_error import UserError
from tests.training.tiny_training import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run in mixed precision, and its model."""
    path = tmp_path_factory.mktemp("run")
    model = Transformer(
        9,
        9,
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=8,
        ffn_dim=8,
        num_heads=2,
        dropout=0.1,
        dtype="mixed_bfloat16",
    )
    # Tracing would take longer than the steps.
    model.compile("sgd", run_eagerly=True)
    return path, train(path, epochs=1, model=model, data=pairs())


def pairs():
    ids = np.array([[4, 5, 6, 3], [7, 3, 0, 0]], "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    batch = (inputs, ids, (ids > 0).astype("float32"))
    return tf.data.Dataset.from_tensors(batch).repeat()


@pytest.mark.slow
def test_weights_come_back_in_another_precision(trained):
    path, model = trained
    loaded = load_model(path, weights="last")
    assert loaded.dtype_policy.name == "float32"
    assert model.dtype_policy.name == "mixed_bfloat16"
    for a, b in zip(loaded.variables, model.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())

    ids = np.array([[4, 5, 6, 3]])
    inputs = {"source_ids": ids, "target_ids": ids}
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=0.05)
    same = load_model(path, dtype="mixed_bfloat16", weights="last")
    np.testing.assert_array_equal(same(inputs), model(inputs))


def test_weights_that_are_not_there_are_refused(trained):
    path, _ = trained
    with pytest.raises(RunError, match="no intact checkpoint 'average'"):
        load_model(path, weights="average")


@pytest.mark.parametrize("weights", ["worst", "", 3])
def test_weights_that_no_run_has(trained, weights):
    with pytest.raises(RunError, match=f"Received: weights={weights!r}"):
        load_model(trained[0], weights=weights)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_no_numbers_are_refused(trained, value):
    path, model = trained
    variables = [tf.Variable(each.value) for each in model.variables]
    kernel = next(each for each in variables if each.dtype == tf.float32)
    kernel[-1].assign(tf.fill(kernel.shape[1:], value))
    average = RunDirectory(path).checkpoints / "average"
    write_checkpoint(average, 1, keep=1, vars=variables)
    with pytest.raises(UserError, match="ckpt-1 has weights that are NaN or"):
        load_model(path, weights="average")
    shutil.rmtree(average)


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(RunError, match="not a run with a model"):
        load_model(RunDirectory(tmp_path))
