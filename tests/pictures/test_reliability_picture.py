import numpy as np
import pytest

from kseq.pictures import reliability_picture


@pytest.mark.parametrize("counts", [[5, 0, 1], [0, 0, 0]])
def test_bins_without_answers(counts):
    png = reliability_picture(np.array(counts), [0.2, 0.0, 0.9], [0, 0, 1])
    assert png.startswith(b"\x89PNG\r\n")
