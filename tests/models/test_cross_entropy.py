import resource

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from kseq.models.cross_entropy import cross_entropy, symmetric_divergence


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


@pytest.mark.parametrize("jit_compile", [False, True])
def test_of_equal_logits_the_first_is_predicted(jit_compile):
    """A model that knows nothing has the accuracy of a guess."""
    right_of = tf.function(
        lambda logits: cross_entropy(tf.range(4), logits)[2],
        jit_compile=jit_compile,
    )
    right = right_of(tf.constant([[0.5] * 4] * 4))
    assert right.numpy().tolist() == [True, False, False, False]
    right = right_of(tf.constant([[0.5, 1.0, 1.0, 0.5]] * 4))
    assert right.numpy().tolist() == [False, True, False, False]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_its_gradient_is_that_of_tensorflow(seed, smoothing, jit_compile):
    labels = tf.constant(np.random.randint(7, size=(2, 3)), tf.int32)
    weight = np.random.normal(size=(2, 3)).astype("float32")
    start = tf.constant(np.random.normal(size=(2, 3, 7)) * 20, tf.float32)

    def expected(logits):
        targets = tf.one_hot(
            labels, 7, 1 - smoothing + smoothing / 7, smoothing / 7
        )
        return tf.nn.softmax_cross_entropy_with_logits(targets, logits)

    @tf.function(jit_compile=jit_compile)
    def gradient(loss):
        with tf.GradientTape() as tape:
            tape.watch(start)
            total = tf.reduce_sum(loss(start) * weight)
        return tape.gradient(total, start)

    np.testing.assert_allclose(
        gradient(lambda logits: cross_entropy(labels, logits, smoothing)[0]),
        gradient(expected),
        atol=5e-6,
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_number_of_classes_may_be_unknown(seed, smoothing):
    labels = tf.constant(np.random.randint(7, size=(2, 3)), tf.int32)
    logits = tf.constant(np.random.normal(size=(2, 3, 7)), tf.float32)

    def loss_and_gradient(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss, _, _ = cross_entropy(labels, logits, smoothing)
        return loss, tape.gradient(loss, logits)

    signature = [tf.TensorSpec((None, None, None))]
    traced = tf.function(loss_and_gradient, signature, autograph=False)
    for found, expected in zip(
        traced(logits), loss_and_gradient(logits), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32"])
def test_labels_of_any_width(seed, dtype):
    """In 16 bits, the rows cannot be counted."""
    labels = np.random.randint(3, size=40_000)
    logits = tf.constant(np.random.normal(size=(40_000, 3)), tf.float32)
    found = []
    for each in (labels, labels.astype(dtype)):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss, *_ = cross_entropy(each, logits, 0.1)
        found.append(tape.gradient(loss, logits))
    np.testing.assert_array_equal(*found)


def test_bad_labels():
    logits = np.zeros((2, 3))
    with pytest.raises(ValueError, match="Received: dtype float32"):
        cross_entropy(np.zeros(2, "float32"), logits)
    with pytest.raises(ValueError, match="needs labels"):
        cross_entropy(None, logits)


def test_no_gradient_by_the_likelihood():
    logits = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        _, likelihood, _ = cross_entropy([0], logits, 0.1)
    assert not np.any(tape.gradient(likelihood, logits))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_not_finite(value):
    logits = np.zeros((2, 4), "float32")
    logits[0, 1] = value
    loss, *_ = cross_entropy(np.array([2, 2]), logits, 0.1)
    assert not np.isfinite(loss[0])
    np.testing.assert_allclose(loss[1], np.log(4), rtol=1e-6)


def test_logits_are_overwritten():
    """Only the logits themselves are in new memory: its pages tell."""
    rows, classes = 512, 20_000
    inputs = tf.random.normal((rows, 2))
    labels = tf.random.uniform((rows,), 0, classes, tf.int32)
    kernel = tf.random.normal((2, classes))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(kernel)
            loss, *_ = cross_entropy(labels, inputs @ kernel, 0.1)
            total = tf.reduce_sum(loss * inputs[:, 0])
        return tape.gradient(total, kernel)

    def pages():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    step()
    before = pages()
    step()
    size = rows * classes * 4 / resource.getpagesize()
    assert (pages() - before) / size < 1.5


def test_symmetric_divergence(seed):
    logits, others = np.random.normal(0, 3, (2, 4, 5)).astype("float16")
    p, q = (
        scipy.special.softmax(x.astype(float), -1) for x in (logits, others)
    )
    expected = scipy.special.rel_entr(p, q) + scipy.special.rel_entr(q, p)
    found = symmetric_divergence(logits, others)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected.sum(axis=-1), rtol=1e-3)
    far = symmetric_divergence([[1e4, 0.0]], [[0.0, 1e4]])  # log 0
    np.testing.assert_allclose(far, [2e4])
