"""One model, data of several signatures."""

import keras
import pytest
import tensorflow as tf

from tests.models.test_exact_model import (
    assert_all_close,
    batches,
    same_start,
    tiny_model,
)
from tests.slow import slow


def compiled():
    model = same_start(tiny_model())
    model.compile(keras.optimizers.SGD(0.1))
    return model


def count_traces(model):
    """A list that grows by one with each trace of a loss."""
    traces, token_losses = [], model.token_losses

    def counting(*arguments):
        traces.append(1)
        return token_losses(*arguments)

    model.token_losses = counting
    return traces


def static(length, dtype="int32", weights=True):
    """A data set whose batches all have one known shape."""
    [(inputs, labels, weight)] = batches([4], length=length)
    inputs = {"ids": inputs["ids"].astype(dtype)}
    batch = (inputs, labels.astype(dtype), weight)
    return tf.data.Dataset.from_tensors(batch if weights else batch[:2])


SIGNATURES = {
    "another length": lambda: static(8),
    "without weights": lambda: static(6, weights=False),
    "int64": lambda: static(6, dtype="int64"),
}


@pytest.mark.parametrize(
    "name", [slow("another length"), "without weights", slow("int64")]
)
def test_fit_and_evaluate_accept_a_second_signature(name):
    other = SIGNATURES[name]
    model, alone = compiled(), compiled()
    model.fit(static(6), verbose=0, shuffle=False)
    model.evaluate(static(6), verbose=0)
    alone.set_weights(model.get_weights())
    options = {"verbose": 0, "return_dict": True}
    assert model.evaluate(other(), **options) == alone.evaluate(
        other(), **options
    )
    model.fit(other(), verbose=0, shuffle=False)
    alone.fit(other(), verbose=0, shuffle=False)
    assert_all_close(model.get_weights(), alone.get_weights(), atol=1e-7)


def test_arrays_and_python_batches_after_a_data_set():
    model = compiled()
    model.fit(static(6), verbose=0, shuffle=False)
    [(inputs, labels, weights)] = batches([10], length=5)
    model.fit(inputs, labels, batch_size=4, verbose=0)
    model.fit(inputs, labels, sample_weight=weights, batch_size=4, verbose=0)
    one = model.evaluate(
        inputs,
        labels,
        sample_weight=weights,
        batch_size=4,
        verbose=0,
        return_dict=True,
    )
    whole = model.test_on_batch(inputs, labels, weights, return_dict=True)
    assert one["loss"] == pytest.approx(whole["loss"], abs=1e-5)
    model.test_on_batch(inputs, labels)
    model.train_on_batch(inputs, labels, weights)


def test_arrays_with_accumulation_and_without_weights():
    model = same_start(tiny_model())
    model.compile(keras.optimizers.SGD(0.1), accumulation_steps=2)
    [(inputs, labels, _)] = batches([6])
    alone = compiled()
    for one in (model, alone):
        one.train_on_batch(inputs, labels)
    assert_all_close(model.get_weights(), alone.get_weights())


def test_many_lengths_of_one_data_set_are_traced_once():
    def generate():
        for length in range(1, 9):
            yield from batches([3, 5], length=length)

    data = tf.data.Dataset.from_generator(
        generate,
        output_signature=(
            {"ids": tf.TensorSpec((None, None), tf.int32)},
            tf.TensorSpec((None, None), tf.int32),
            tf.TensorSpec((None, None), tf.float32),
        ),
    ).apply(tf.data.experimental.assert_cardinality(16))
    model = compiled()
    traces = count_traces(model)
    model.fit(data, epochs=2, verbose=0, shuffle=False)
    assert len(traces) == 1
    model.evaluate(data, verbose=0)
    model.evaluate(data, verbose=0)
    assert len(traces) == 2


def test_a_known_signature_is_not_traced_again():
    model = compiled()
    traces = count_traces(model)
    for length in (6, 8, 6, 8):
        model.fit(static(length), verbose=0, shuffle=False)
    assert len(traces) == 2
