"""Exports that are broken or hostile are loaded, or refused by one message."""

import contextlib
import resource
import time

import numpy as np
import pytest
import tensorflow as tf

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
