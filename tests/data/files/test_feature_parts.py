from types import SimpleNamespace

import numpy as np
import pytest

from kseq.data.files import feature_parts
from kseq.data.files.feature_parts import compute_features


@pytest.mark.parametrize(("batch", "expected"), [(1, [3, 3, 1]), (2, [4, 3])])
def test_many_small_files_are_several_parts(
    batch, expected, tmp_path, monkeypatch
):
    """What is finished stays after a kill, and the progress moves."""
    monkeypatch.setattr(feature_parts, "_MOST_FILES", 3)
    parts = []

    def compute(files):
        parts.append(len(files))
        return (
            np.array([*files.values()], "float32")[:, None],
            [1] * len(files),
            [],
        )

    shape, _, _ = compute_features(
        SimpleNamespace(parts=tmp_path),
        tmp_path / "features",
        compute,
        dict(zip("abcdefg", range(7), strict=True)),
        [10] * 7,
        batch=batch,
    )
    assert parts == expected
    assert shape == (7, 1)
    values = np.fromfile(tmp_path / "features.values", "float32")
    np.testing.assert_array_equal(values, range(7))
