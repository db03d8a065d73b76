"""Every `>>>` in kseq runs."""

import doctest
import importlib
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import kseq

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


# Their libraries are of extras that the tests do not need.
LEFT_OUT = {"kseq.loading.predict_lines"}


def examples():
    names = {"keras": keras, "kseq": kseq, "np": np, "tf": tf}
    for module in pkgutil.walk_packages(kseq.__path__, "kseq."):
        if module.name in LEFT_OUT:
            continue
        found = doctest.DocTestFinder(exclude_empty=True).find(
            importlib.import_module(module.name), extraglobs=names
        )
        yield from (test for test in found if test.examples)


@pytest.mark.parametrize(
    "example", [pytest.param(test, id=test.name) for test in examples()]
)
def test_example(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(example, out=report.append)
    assert not report, "".join(report)
