import pytest

from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder


@pytest.fixture
def folder(tmp_path):
    folder = PreparedFolder(tmp_path)
    folder.finish({"kind": "pairs", "arrays": {"ids": {"dtype": "uint16"}}})
    return folder


@pytest.mark.parametrize("error", [KeyError("a"), TypeError(), ValueError()])
def test_a_record_that_is_broken(folder, error):
    with (
        pytest.raises(DataError, match=r"is broken: prepared\.json\.$"),
        folder.opened("pairs"),
    ):
        raise error


def test_an_array_without_a_shape(folder):
    with (
        pytest.raises(DataError, match=r"is broken: prepared\.json\.$"),
        folder.opened("pairs") as record,
    ):
        folder.array(record, "ids")


def test_a_file_that_is_broken_keeps_its_message(folder):
    with (
        pytest.raises(DataError, match=r"^ids is broken\.$"),
        folder.opened("pairs"),
    ):
        raise DataError("ids is broken.")


def test_another_kind(folder):
    with (
        pytest.raises(DataError, match="expected 'text'"),
        folder.opened("text"),
    ):
        pass
