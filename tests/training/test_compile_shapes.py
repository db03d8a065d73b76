"""All shapes of batches are compiled before the first step."""

import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq import training
from kseq.data.files.batch_shapes import with_shapes
from kseq.models.exact_model import ExactModel, TokenLosses
from kseq.models.step_function import StepFunction, TrainFunction
from kseq.runs import RunDirectory
from kseq.training.compile_shapes import compile_shapes
from kseq.user_error import UserError
from tests.training.tiny_training import Config

SHAPES = ((8, 3), (4, 6))


class Sums(ExactModel):
    def token_losses(self, inputs, labels, outputs, sample_weight, *_):
        loss = keras.ops.square(labels - outputs[..., 0])
        return TokenLosses(loss, sample_weight)


def make_model(jit_compile=True, run_eagerly=False, ema=False):
    keras.utils.set_random_seed(1)
    inputs = keras.Input((None,), name="source_ids", dtype="int32")
    x = keras.layers.Embedding(9, 4, name="embedding")(inputs)
    outputs = keras.layers.Dense(1, name="outputs")(x)
    model = Sums({"source_ids": inputs}, outputs, name="sums")
    model.compile(
        keras.optimizers.SGD(0.1, use_ema=ema),
        jit_compile=jit_compile,
        run_eagerly=run_eagerly,
    )
    return model


def batch(rows, length):
    ids = tf.cast(
        tf.random.stateless_uniform((rows, length), (1, 2)) * 9, "int32"
    )
    return {"source_ids": ids}, tf.ones((rows, length)), tf.ones((rows, length))


def make_data(shapes=SHAPES):
    """An endless stream of batches of these shapes, in turn."""
    spec = tf.TensorSpec((None, None), tf.float32)
    ids = tf.TensorSpec((None, None), tf.int32)
    batches = tf.data.Dataset.from_generator(
        lambda: (batch(*shape) for shape in shapes),
        output_signature=({"source_ids": ids}, spec, spec),
    )
    batches = batches.apply(
        tf.data.experimental.assert_cardinality(len(shapes))
    )
    return with_shapes(batches.repeat(), (batch(*shape) for shape in shapes))


@pytest.fixture
def compiled(monkeypatch):
    """(shapes of the batch, signature) of what is compiled, without XLA."""
    calls = []

    def compile_shape(self, data, spec=None):
        parts = [tuple(part[1].shape) for part in self._parts(data)]
        calls.append((parts, spec))

    monkeypatch.setattr(TrainFunction, "compile_shape", compile_shape)
    return calls


def state(model):
    return [v.numpy() for v in (*model.variables, *model.optimizer.variables)]


def is_for_xla(step):
    [concrete] = step._list_all_concrete_functions()
    return concrete.function_def.attr["_XlaMustCompile"].b


def test_nothing_changes_and_one_function_is_for_all_shapes():
    model, data = make_model(), make_data()
    before = state(model)
    compile_shapes(model, data)
    for value, other in zip(before, state(model), strict=True):
        np.testing.assert_array_equal(value, other)

    function = model.train_function
    [(_, step)] = function._compiled
    assert step.experimental_get_tracing_count() == 1
    assert is_for_xla(step)
    model.fit(data, steps_per_epoch=4, shuffle=False, verbose=0)
    assert model.train_function is function
    assert len(function._compiled) == 1
    assert step.experimental_get_tracing_count() == 1
    assert model.steps_done == 4

    other = make_model()
    other.fit(data, steps_per_epoch=4, shuffle=False, verbose=0)
    for value, expected in zip(state(model), state(other), strict=True):
        np.testing.assert_array_equal(value, expected)


def test_each_shape_is_compiled_with_the_signature_of_the_data(compiled):
    data = make_data()
    compile_shapes(make_model(), data)
    assert sorted(parts for parts, _ in compiled) == [[(4, 6)], [(8, 3)]]
    assert all(spec == data.element_spec for _, spec in compiled)


def test_each_device_gets_its_part(compiled, two_devices):
    with two_devices.scope():
        model = make_model()
    compile_shapes(model, make_data())
    assert [parts for parts, _ in compiled] == [[(4, 3)] * 2, [(2, 6)] * 2]


def test_nothing_is_compiled_without_xla_or_shapes(compiled):
    compile_shapes(make_model(jit_compile=False), make_data())
    compile_shapes(make_model(), make_data().take(3))
    assert not compiled


def test_what_fails_is_left_to_the_step(monkeypatch):
    def compile_shape(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "out of memory")

    monkeypatch.setattr(TrainFunction, "compile_shape", compile_shape)
    compile_shapes(make_model(), make_data())


def test_a_missing_part_of_cuda_is_named(monkeypatch):
    """By the first step: where it is missing, no shape is compiled."""

    def run(*_):
        message = "libdevice not found at ./libdevice.10.bc"
        raise tf.errors.InternalError(None, None, message)

    monkeypatch.setattr(StepFunction, "_run", run)
    model, data = make_model(), make_data()
    with pytest.raises(UserError, match="--xla_gpu_cuda_data_dir=PATH"):
        model.fit(data, steps_per_epoch=1, shuffle=False, verbose=0)


def test_training_begins_with_it_unless_it_is_done(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(
        sys.modules["kseq.training.fit"],
        "compile_shapes",
        lambda _, batches: compiled.append(len(batches.shapes)),
    )

    def fit(steps):
        run = RunDirectory(tmp_path)
        run.start(Config(), ("batch_size",))
        model = make_model(jit_compile=False, run_eagerly=True)
        run.save_model(model)
        training.fit(
            model,
            make_data(),
            training.Checkpoints(run, monitor="loss", mode="min"),
            steps=steps,
            steps_per_epoch=2,
        )

    fit(2)
    fit(2)  # there is nothing to train
    fit(4)
    assert compiled == [2, 2]


def test_evaluation_is_not_compiled_for_each_shape():
    model = make_model()
    data = make_data([(1, 3), (2, 3), (1, 4), (3, 5)])
    model.evaluate(data, steps=4, verbose=0)
    [(_, step)] = model.test_function._compiled
    assert not is_for_xla(step)
