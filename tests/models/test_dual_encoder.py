"""Two encoders that learn which of a batch's targets answers a source.

What they share with models that decode is tested with those.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from kseq.models import DualEncoder
from kseq.models.in_batch_losses import in_batch_losses
from tests.layers.numpy_recurrence import recurrent_pooling
from tests.models.new_weights import new_weights
from tests.slow import slow

SIZES = {"embedding_dim": 6, "units": 4, "dim": 5}
VOCABULARIES = {"one vocabulary": (30, None), "two": (30, 20)}


def make_model(kind="two", **more):
    return DualEncoder(*VOCABULARIES[kind], **SIZES, **more)


@functools.cache
def built(kind="two", **more):
    """A model, and what its variables were at first."""
    model = make_model(kind, **more)
    return model, [variable.numpy() for variable in model.variables]


def batch_of(size, length=4):
    """Inputs, labels and weights; a target comes twice, a row counts not."""
    lengths = np.random.randint(1, length + 1, (2, size, 1))
    ids = np.random.randint(4, 20, (2, size, length)).astype("int32")
    source, target = np.where(np.arange(length) < lengths, ids, 0)
    target[:, 0] = 2
    if size > 3:
        target[1] = target[0]
    weights = (target > 0).astype("float32")
    if size > 4:
        weights[3] = 0
    return {"source_ids": source, "target_ids": target}, target, weights


def losses_in_numpy(model, inputs, weights, smoothing=0.0):
    """The loss of each row, by the definition."""
    logits = ops.convert_to_numpy(model(inputs)).astype("float64")
    ids, real = inputs["target_ids"], weights.any(axis=1)
    losses = []
    for row in np.flatnonzero(real):
        others = [
            other
            for other in np.flatnonzero(real)
            if other != row and (ids[other] != ids[row]).any()
        ]
        energies = logits[row, [row, *others]]
        log_probs = energies - np.log(np.exp(energies).sum())
        losses.append(
            -(1 - smoothing) * log_probs[0] - smoothing * log_probs.mean()
        )
    return losses


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_agrees_with_numpy(seed, kind):
    model = new_weights(*built(kind))
    inputs, _, _ = batch_of(4)
    sides = {
        "source": (model.encode_source(inputs), inputs["source_ids"]),
        "target": (
            model.encode_target(inputs["target_ids"]),
            inputs["target_ids"],
        ),
    }
    expected = {}
    for side, (found, ids) in sides.items():
        table = getattr(model, f"{side}_embedding").get_weights()[0]
        encoder = getattr(model, f"{side}_encoder").get_weights()
        [kernel] = getattr(model, f"{side}_projection").get_weights()
        rows = [
            recurrent_pooling(table[row[row != 0]] * 6**0.5, encoder)[0]
            for row in ids
        ]
        vectors = np.stack(rows) @ kernel
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        np.testing.assert_allclose(found, vectors, atol=1e-5)
        expected[side] = vectors
    scale = np.exp(model.similarity.get_weights()[0])
    np.testing.assert_allclose(
        model(inputs),
        scale * expected["source"] @ expected["target"].T,
        atol=1e-5 * scale,
    )


def test_one_vocabulary_has_one_embedding():
    one, two = (built(kind)[0].count_params() for kind in VOCABULARIES)
    assert two - one == 20 * 6


def test_no_piece_is_no_vector(seed):
    model = new_weights(*built())
    ids = np.array([[0, 0, 0], [4, 0, 0]])
    vectors = ops.convert_to_numpy(model.encode_source({"source_ids": ids}))
    assert vectors.any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_is_among_other_answers_of_the_batch(seed, smoothing):
    """Equal answers are no negatives, rows without weights are nothing."""
    model = new_weights(*built())
    inputs, labels, weights = batch_of(7)
    found = in_batch_losses(
        model.similarity,
        *model.loss_outputs(inputs, training=False),
        inputs["target_ids"],
        tf.constant(weights),
        smoothing,
    )
    expected = losses_in_numpy(model, inputs, weights, smoothing)
    real = weights.any(axis=1)
    np.testing.assert_array_equal(found.weight, real)
    np.testing.assert_allclose(found.loss[real], expected, 1e-4, 1e-5)
    plain = losses_in_numpy(model, inputs, weights)
    np.testing.assert_allclose(found.likelihood[real], plain, 1e-4, 1e-5)

    model.compile("sgd", label_smoothing=smoothing, run_eagerly=True)
    logs = model.test_on_batch(inputs, labels, weights, return_dict=True)
    assert logs["loss"] == pytest.approx(np.mean(plain), rel=1e-4)
    assert logs["tokens"] == (inputs["source_ids"] > 0).sum()
    right = ops.convert_to_numpy(found.right)[real]
    assert logs["accuracy"] == pytest.approx(right.mean())


def test_of_equal_similarities_the_first_is_predicted():
    same = tf.ones((4, 5))
    ids = tf.constant([[4], [5], [6], [7]])
    found = in_batch_losses(built()[0].similarity, same, same, ids)
    assert found.right.numpy().tolist() == [True, False, False, False]


def test_weights_of_rows_and_none(seed):
    model = new_weights(*built())
    inputs, labels, weights = batch_of(7)
    model.compile("sgd", run_eagerly=True)
    whole = model.test_on_batch(inputs, labels, return_dict=True)
    ones = model.test_on_batch(
        inputs, labels, np.ones_like(weights), return_dict=True
    )
    assert whole == ones
    rows = weights.any(axis=1) * np.arange(1.0, 8.0)
    logs = model.test_on_batch(inputs, labels, rows, return_dict=True)
    losses = losses_in_numpy(model, inputs, weights)
    assert logs["loss"] == pytest.approx(
        losses @ rows[rows > 0] / rows.sum(), rel=1e-4
    )


def test_a_row_without_weights_changes_no_gradient(seed):
    model = new_weights(*built())
    model.compile("sgd")
    inputs, labels, weights = batch_of(7)
    real = weights.any(axis=1)
    without = {k: tf.constant(v[real]) for k, v in inputs.items()}
    inputs = {k: tf.constant(v) for k, v in inputs.items()}
    loss, gradients = model.loss_and_gradients((inputs, labels, weights))
    other_loss, other_gradients = model.loss_and_gradients(
        (without, labels[real], weights[real])
    )
    assert float(loss) == pytest.approx(float(other_loss), rel=1e-5)
    for one, other in zip(gradients, other_gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_gradient_reaches_the_answers_of_other_devices(seed, two_devices):
    """Of uneven parts, each device computes that of the whole batch."""
    sources, targets = tf.random.normal((2, 5, 3)).numpy()
    ids = np.array([[2, 4], [2, 5], [2, 4], [2, 6], [2, 7]], "int32")
    weights = np.array([1, 1, 1, 0, 2], "float32")

    def gradients(*parts):
        parts = list(map(tf.convert_to_tensor, parts))
        with tf.GradientTape() as tape:
            tape.watch(parts[:2])
            losses = in_batch_losses(
                lambda query, memory: tf.matmul(
                    query, memory, transpose_b=True
                ),
                *parts,
            )
            loss = tf.reduce_sum(losses.loss * losses.weight)
        return tape.gradient(loss, parts[:2])

    whole = sources, targets, ids, weights
    expected = gradients(*whole)
    for parts in ((3, 5), (1, 5), (0, 5)):
        edges = [0, parts[0], parts[1]]

        def part(context, edges=edges):
            place = context.replica_id_in_sync_group
            return tuple(x[edges[place] : edges[place + 1]] for x in whole)

        values = two_devices.experimental_distribute_values_from_function(
            lambda context: tuple(map(tf.constant, part(context)))
        )
        found = two_devices.run(tf.function(gradients), args=values)
        for one, both in zip(expected, found, strict=True):
            split = two_devices.experimental_local_results(both)
            np.testing.assert_allclose(tf.concat(split, 0), one, atol=1e-5)


@pytest.mark.parametrize("parts", [2, slow(9)])
def test_micro_batches_change_nothing(parts):
    """Though the answers of all of them compete."""
    data = batch_of(7)

    def trained(accumulation_steps):
        keras.utils.set_random_seed(1)
        model = new_weights(*built())
        model.compile(
            keras.optimizers.SGD(0.5),
            clip_norm=1.0,
            label_smoothing=0.1,
            accumulation_steps=accumulation_steps,
            run_eagerly=True,
        )
        logs = model.train_on_batch(*data, return_dict=True)
        return logs, model.get_weights()

    (logs, weights), (cut, cut_weights) = trained(1), trained(parts)
    assert cut == pytest.approx(logs, rel=1e-4)
    for one, other in zip(weights, cut_weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_micro_batches_of_half_precision():
    """Weights are bfloat16 and float32; all gradients are added in float32."""
    model, _ = built(dtype="bfloat16")
    assert {v.dtype for v in model.trainable_variables} == {
        "bfloat16",
        "float32",
    }
    data, found = batch_of(7), []
    for parts in (1, 2):
        model.compile("sgd", accumulation_steps=parts, run_eagerly=True)
        model.optimizer.learning_rate = 0.0
        logs = model.train_on_batch(*data, return_dict=True)
        found.append([logs["loss"], logs["gradient_norm"]])
    np.testing.assert_allclose(*found, rtol=0.02)


def test_micro_batches_have_the_same_dropout_twice(monkeypatch):
    """Where the gradient is computed, the outputs are those of the loss."""
    model, _ = built(dropout=0.5)
    model.compile("sgd", accumulation_steps=2, run_eagerly=True)
    outputs = []

    def recorded(inputs, training):
        outputs.append(DualEncoder.loss_outputs(model, inputs, training))
        return outputs[-1]

    monkeypatch.setattr(model, "loss_outputs", recorded)
    model.train_on_batch(*batch_of(7))
    first, second, first_again, second_again = outputs
    for one, other in ((first, first_again), (second, second_again)):
        for vectors, again in zip(one, other, strict=True):
            np.testing.assert_array_equal(vectors, again)
    assert np.any(first[0][:3] != second[0][:3])


@pytest.mark.slow  # its loss and its gradients are compared above
def test_learns_which_target_has_the_pieces_of_the_source(new_seed):
    """In another order, and of new sources too."""
    model = DualEncoder(30, embedding_dim=16, units=16, dim=16, dropout=0.1)
    model.compile(keras.optimizers.Adam(0.02))

    def batch():
        pieces = np.random.randint(4, 30, (32, 3)).astype("int32")
        start = np.full((32, 1), 2, "int32")
        target = np.concatenate([start, pieces[:, ::-1]], axis=1)
        return {"source_ids": pieces, "target_ids": target}, target

    for _ in range(50):
        model.train_on_batch(*batch())
    assert model.test_on_batch(*batch(), return_dict=True)["accuracy"] > 0.8


@pytest.mark.parametrize(
    "arguments",
    [
        {"source_vocab_size": 0},
        {"target_vocab_size": 0.5},
        *({name: value} for name in SIZES for value in (0, 0.5)),
        {"dropout": -0.1},
    ],
)
def test_arguments_out_of_range(arguments):
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value}"):
        DualEncoder(**{"source_vocab_size": 9, **SIZES, **arguments})
