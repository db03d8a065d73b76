"""The pinned list of operations is that of what kseq exports."""

from pathlib import Path

import pytest

from kseq.loading.load_export import read_meta_graph
from kseq.serving import allowed_ops
from kseq.serving.safe_graph import other_ops
from tests.exported_ops import exported_ops, module_of, traced_ops
from tests.models.seq2seq_systems import CASES, batch_of
from tests.slow import others_slow

ADVICE = "python -m tests.exported_ops writes it again"


def test_as_it_is_written():
    text = Path(allowed_ops.__file__).read_text("utf-8")
    assert text == module_of(allowed_ops.ALLOWED_OPS), ADVICE


def test_exports_have_no_other(exports, classifier_export, retriever_export):
    """Three in every run; all of them before a release."""
    for path in (exports["lstm"], classifier_export, retriever_export):
        assert other_ops(read_meta_graph(path)) == [], ADVICE


@pytest.mark.parametrize("name", others_slow(CASES, ["copies"]))
def test_models_have_no_other(name):
    make, source = CASES[name]
    inputs, *_ = batch_of(source, 2)
    assert traced_ops(make(), inputs) <= allowed_ops.ALLOWED_OPS, ADVICE


@pytest.mark.slow
def test_it_has_what_exports_have_and_no_more():
    found = exported_ops()
    assert found - allowed_ops.ALLOWED_OPS == set(), ADVICE
    assert allowed_ops.ALLOWED_OPS - found == set(), ADVICE
