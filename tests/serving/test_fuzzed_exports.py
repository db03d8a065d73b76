"""Exports that are broken or hostile are loaded, or refused by one message."""

import contextlib
import resource
import shutil
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import kseq
from kseq.user_error import UserError
from tests.recipe_models import make_served
from tests.serving.mutations import mutated
from tests.slow import slow

SAMPLE = 40
MOST = 2**20  # KiB of memory, 1 GiB
LONGEST = 20.0  # seconds, on a busy machine


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Of a task whose graph is small, with a loop and a function."""
    folder = tmp_path_factory.mktemp("saved_models")
    served = make_served("learn_algorithms lstm")
    return kseq.serving.export(served, folder)


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    monkeypatch.setattr("kseq.terminal._FIRST", 600)


@pytest.mark.parametrize(
    "seeds", [range(SAMPLE), slow(range(SAMPLE, 1000))], ids=["sample", "all"]
)
def test_mutated_exports(whole, tmp_path, seeds):
    opened = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        path = tmp_path / f"{seed}"
        kind = mutated(whole, path, seed)
        print(f"{seed=}: {kind}")  # shown where it fails
        start = time.perf_counter()
        opened += opens(path)
        assert time.perf_counter() - start < LONGEST
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < MOST
    assert 0 < opened < len(seeds)


def test_a_constant_of_another_type(whole, tmp_path):
    """TensorFlow would end the process."""
    path = tmp_path / "1"
    shutil.copytree(whole, path)
    file = path / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    nodes = [
        node
        for function in saved.meta_graphs[0].graph_def.library.function
        for node in function.node_def
        if node.op == "Const"
    ]
    for node in nodes[::20]:
        kept = node.attr["dtype"].type
        other = tf.float32 if kept == tf.string.as_datatype_enum else tf.string
        node.attr["dtype"].type = other.as_datatype_enum
        file.write_bytes(saved.SerializeToString())
        with pytest.raises(UserError, match="has a value of another type"):
            kseq.load(path)
        node.attr["dtype"].type = kept


def opens(path):
    """Whether a version is loaded, and answers without a Python error."""
    try:
        predictor = kseq.load(path)
    except UserError as error:
        [line] = str(error).splitlines()
        assert str(path) in line
        assert len(line) < 1500
        return False
    answer(predictor)
    return True


def answer(predictor):
    vectors = np.zeros((2, predictor.num_features), "float32")
    with contextlib.suppress(UserError, tf.errors.OpError):
        predictor([vectors])
