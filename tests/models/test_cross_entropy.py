import numpy as np
import pytest

from kseq.models.cross_entropy import cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(seed, smoothing):
    logits = np.random.normal(size=(2, 3, 5)).astype("float32")
    labels = np.array([[0, 1, 2], [3, 4, 0]], "int32")
    logits[0, 0] = [9, 1, 2, 3, 4]
    logits[1, 1] = [9, 1, 2, 3, 4]
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    targets = (1 - smoothing) * np.eye(5)[labels] + smoothing / 5
    loss, likelihood, right = cross_entropy(labels, logits, smoothing)

    np.testing.assert_allclose(
        loss, -(targets * log_probs).sum(axis=-1), atol=1e-5
    )
    np.testing.assert_allclose(
        likelihood, -(np.eye(5)[labels] * log_probs).sum(axis=-1), atol=1e-5
    )
    assert right[0, 0] and not right[1, 1]
