"""The pinned list of operations is that of what kseq exports."""

from pathlib import Path

import pytest

from kseq.loading.load_export import read_meta_graph
from kseq.serving import allowed_ops
from kseq.serving.safe_graph import other_ops
from tests.exported_ops import exported_ops, module_of

ADVICE = "python -m tests.exported_ops writes it again"


def test_as_it_is_written():
    text = Path(allowed_ops.__file__).read_text("utf-8")
    assert text == module_of(allowed_ops.ALLOWED_OPS), ADVICE


def test_exports_have_no_other(exports, classifier_export, retriever_export):
    """Three in every run; all of them before a release."""
    for path in (exports["lstm"], classifier_export, retriever_export):
        assert other_ops(read_meta_graph(path)) == [], ADVICE


@pytest.mark.slow
def test_it_has_what_exports_have_and_no_more():
    found = exported_ops()
    assert found - allowed_ops.ALLOWED_OPS == set(), ADVICE
    assert allowed_ops.ALLOWED_OPS - found == set(), ADVICE
