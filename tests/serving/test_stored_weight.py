"""Exports whose matrices are stored in int8 or bfloat16."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq import cli
from kseq.decoding import GreedySearch
from kseq.loading import load_export
from kseq.serving import export
from kseq.serving.stored_weight import StoredWeight, can_store, free_with
from tests.serving.test_client import ask
from tests.slow import slow

TEXTS = ["the cat sat", "a dog ate 12 bones", "日本", ""]
TARGETS = ["the dog", "a cat ate 3 fish", "cat", ""]


def log_probs(predictor):
    return np.array(predictor.log_probs(TEXTS, TARGETS))[:, 0]


def handles_of(predictor):
    """Of the variables that were stored in another type."""
    inputs = predictor.signatures["score"].captured_inputs
    handles = [each for each in inputs if "stored_" in repr(each)]
    assert handles
    return handles


def size(path):
    """Bytes of its weights, without the names in the same file."""
    checkpoint = tf.train.load_checkpoint(str(path / "variables/variables"))
    return sum(
        checkpoint.get_tensor(name).nbytes
        for name in checkpoint.get_variable_to_shape_map()
        if name.endswith("VARIABLE_VALUE")
    )


@pytest.fixture(scope="module")
def served(generators):
    return generators["lstm"].with_search(GreedySearch())


@pytest.mark.slow  # the classes that it uses are tested below
@pytest.mark.parametrize(
    ("dtype", "share", "close"),
    [
        slow("int8", 0.5, 0.3),
        ("bfloat16", 0.6, 0.3),
    ],
)
def test_export_is_small_and_answers_are_close(
    dtype, share, close, served, tmp_path, monkeypatch, collect_new
):
    monkeypatch.setattr("kseq.serving.stored_weight._LEAST", 100)
    before = [variable.numpy() for variable in served.model.variables]
    path = export(served, tmp_path / "model", quantize=dtype)
    in_float32 = sum(value.nbytes for value in before)
    assert size(path) < share * in_float32
    description = json.loads((path / "assets.extra/kseq.json").read_text())
    assert description["quantized"] == dtype

    first, second = load_export(path), load_export(path)
    expected = log_probs(served.predictor())
    found = log_probs(first)
    np.testing.assert_allclose(found, expected, atol=close)
    assert np.abs(found - expected).max() > 1e-5
    # Neither the model nor what else was loaded shares its variables.
    freed = handles_of(first)
    del first
    collect_new()
    for handle in freed:
        with pytest.raises(tf.errors.FailedPreconditionError):
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    np.testing.assert_array_equal(log_probs(second), found)
    for variable, value in zip(served.model.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)

    if dtype == "int8":
        loaded, as_served = ask(tmp_path, {"copy": (str(path), TEXTS)})["copy"]
        assert loaded["text"] == as_served["text"]
        np.testing.assert_allclose(
            loaded["score"], as_served["score"], atol=1e-4
        )
        answers = second.answers(TEXTS)
        assert loaded["text"] == [each.hypotheses[0].text for each in answers]


def test_weights_are_freed_while_a_function_is_traced(collect_new):
    """Python may collect them at any time: no graph gets what frees them."""

    class Weight:
        resource_handle = tf.raw_ops.VarHandleOp(
            dtype=tf.float32, shape=(), shared_name="to_be_freed"
        )

    handle = Weight.resource_handle
    tf.raw_ops.AssignVariableOp(resource=handle, value=1.0)
    signatures = [tf.function(lambda: 1)]
    free_with(signatures, [Weight])

    @tf.function
    def traced():
        signatures.clear()
        collect_new()
        return tf.constant(1)

    graph = traced.get_concrete_function().graph
    assert [op.type for op in graph.get_operations()] == ["Const", "Identity"]
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


def test_8_bits(seed):
    layer = keras.layers.Embedding(40, 30)
    layer.build()
    values = np.random.normal(0, 1, (40, 30)).astype(np.float32)
    values[3] = 0
    values[7] *= 1000  # must not cost the precision of the other rows
    layer.embeddings.assign(values)
    stored, scale = StoredWeight(layer.embeddings, "int8", "a").parts
    assert (stored.dtype, stored.shape, scale.shape) == (
        *(tf.int8, (40, 30), (40, 1)),
    )
    found = tf.cast(stored, tf.float32) * scale
    assert np.all(np.abs(found - values) <= 0.501 * scale)
    np.testing.assert_array_equal(found[3], 0)
    assert np.abs(stored).max() == 127

    dense = keras.layers.Dense(30)
    dense.build((None, 40))
    dense.kernel.assign(values)
    stored, scale = StoredWeight(dense.kernel, "int8", "b").parts
    assert scale.shape == (1, 30)
    assert np.all(
        np.abs(tf.cast(stored, tf.float32) * scale - values) <= 0.501 * scale
    )
    assert can_store(dense.kernel)
    assert not can_store(dense.bias)


def test_absurd_values_are_refused(served, tmp_path, capfd):
    with pytest.raises(ValueError, match="Received: quantize='int4'"):
        export(served, tmp_path / "model", quantize="int4")
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_absurd_values(tmp_path, capfd):
    for value in ("", "int4", "8", "nan"):
        assert cli.main(["export", "--quantize", value, str(tmp_path)]) == 2
        assert "--quantize: expected one of" in capfd.readouterr().err
