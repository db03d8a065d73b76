"""Properties of every classifier of documents."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from kseq.models import (
    FlatAttention,
    HierarchicalAttention,
    TransformerClassifier,
)
from tests.half_precision import HALF_POLICIES
from tests.layers.numpy_recurrence import recurrent_pooling
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.new_weights import new_weights
from tests.slow import others_slow, slow

RECURRENT = {"embedding_dim": 6, "units": 4, "attention_units": 3}
MODELS = {
    "hierarchical": (HierarchicalAttention, RECURRENT),
    "flat": (FlatAttention, RECURRENT),
    "transformer": (
        TransformerClassifier,
        {"num_layers": 1, "model_dim": 8, "ffn_dim": 8, "num_heads": 2},
    ),
}
DTYPES = ["float32", *HALF_POLICIES]
TOLERANCE = {"float32": 1e-5, "mixed_bfloat16": 0.05, "mixed_float16": 5e-3}


def make_model(kind, **more):
    family, sizes = MODELS[kind]
    return family(30, 3, **sizes, **more)


@functools.cache
def built(kind, **more):
    """A model, and what its variables were at first."""
    model = make_model(kind, **more)
    return model, [variable.numpy() for variable in model.variables]


@pytest.fixture(
    # Tests of serving and of commands run "flat".
    params=others_slow(MODELS, ["hierarchical"])
)
def make(request):
    return lambda **more: new_weights(*built(request.param, **more))


def documents():
    """Sentences of any length; one document has an empty one, one is empty."""
    ids = np.random.randint(4, 30, size=(4, 3, 4))
    lengths = np.random.randint(1, 5, size=(4, 3, 1))
    ids = np.where(np.arange(4) < lengths, ids, 0)
    ids[1, 1] = 0
    ids[2] = 0
    return ids.astype("int32")


def numbers(explained):
    return {k: ops.convert_to_numpy(v) for k, v in explained.items()}


@pytest.mark.parametrize("dtype", others_slow(TOLERANCE, ["float32"]))
def test_padding_changes_nothing(seed, make, dtype):
    model, ids = make(dtype=dtype), documents()
    padded = np.pad(ids, ((0, 0), (0, 2), (0, 3)))
    found = numbers(model.explain({"source_ids": padded}))
    expected = numbers(model.explain({"source_ids": ids}))
    tolerance = {"atol": TOLERANCE[dtype]}

    np.testing.assert_allclose(found["logits"], expected["logits"], **tolerance)
    for name, inside in (
        ("sentence_weights", np.s_[:, :3]),
        ("word_weights", np.s_[:, :3, :4]),
    ):
        weights = found[name]
        np.testing.assert_allclose(weights[inside], expected[name], **tolerance)
        outside = np.ones(weights.shape, bool)
        outside[inside] = False
        assert not weights[outside].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_sum_to_one_over_what_is_real(seed, make, dtype):
    model, ids = make(dtype=dtype), documents()
    explained = numbers(model.explain({"source_ids": ids}))
    real = ids != 0
    for weights, mask in (
        (explained["sentence_weights"], real.any(-1)),
        (explained["word_weights"], real),
    ):
        assert not weights[~mask].any()
        np.testing.assert_allclose(weights.sum(-1), mask.any(-1), atol=0.02)


def test_an_empty_sentence_changes_nothing(seed, make):
    model, ids = make(), documents()
    without = ids[1:2, [0, 2]]
    np.testing.assert_allclose(
        model({"source_ids": ids})[1:2],
        model({"source_ids": without}),
        atol=1e-5,
    )


def test_explains_its_own_logits(seed, make):
    model, ids = make(), documents()
    np.testing.assert_array_equal(
        model({"source_ids": ids}), model.explain({"source_ids": ids})["logits"]
    )


def test_a_bag_of_ngrams_answers_beside_the_network(seed, make):
    with_bag, alone, ids = make(ngrams=2), make(), documents()
    weights = iter([np.array(each) for each in alone.variables])
    for variable in with_bag.variables:
        if not variable.path.startswith("logits/"):
            variable.assign(next(weights))
    scores = np.random.normal(size=with_bag.logits.scores.shape)
    with_bag.logits.scores.assign(scores)
    inputs = {"source_ids": ids}
    np.testing.assert_array_equal(
        with_bag(inputs, training=True), alone(inputs, training=True)
    )
    found, expected = (
        numbers(each.explain(inputs)) for each in (with_bag, alone)
    )
    mixed = numbers({"": with_bag.logits(expected["logits"], ids)})[""]
    np.testing.assert_allclose(found.pop("logits"), mixed, atol=1e-5)
    assert np.abs(mixed - expected["logits"]).max() > 0.1
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name])


def test_sentences_are_dropped_in_training_alone(seed, make):
    """At a rate of 1 one sentence remains of each document."""
    model, ids = make(sentence_dropout=1.0), documents()
    one_each = np.stack(
        [model({"source_ids": ids[:, i : i + 1]}) for i in range(ids.shape[1])]
    )
    found = ops.convert_to_numpy(model({"source_ids": ids}, training=True))
    distance = np.abs(one_each - found).max(axis=-1).min(axis=0)
    np.testing.assert_allclose(distance, 0, atol=1e-5)
    whole = ops.convert_to_numpy(model({"source_ids": ids}))
    assert np.abs(found - whole).max() > 1e-3


def test_starts_from_given_vectors(make):
    model, ids = make(), documents()
    width = model.embedding.vectors.shape[1]
    vectors = np.random.normal(size=(30, width)).astype("float32")
    model.embedding.vectors.assign(vectors)
    np.testing.assert_array_equal(model.embedding(ids), vectors[ids])


@pytest.mark.parametrize("dtype", [slow("float32"), *HALF_POLICIES])
def test_training_stays_finite_with_empty_documents(seed, make, dtype):
    model = make(dtype=dtype, dropout=0.3)
    # Tracing would take longer than the step.
    adam = keras.optimizers.Adam(0.01)
    model.compile(adam, clip_norm=1.0, run_eagerly=True)
    batch = {"source_ids": documents()}, np.arange(4) % 3
    logs = model.train_on_batch(*batch, np.ones(4), return_dict=True)

    assert all(np.isfinite(value) for value in logs.values()), logs
    assert all(np.isfinite(w).all() for w in model.get_weights())
    assert np.isfinite(model({"source_ids": batch[0]["source_ids"]})).all()


def test_counts_words(seed, make):
    model = make()
    model.compile(keras.optimizers.SGD(), run_eagerly=True)
    ids = documents()
    logs = model.test_on_batch(
        {"source_ids": ids}, np.zeros(4, int), np.ones(4), return_dict=True
    )
    assert logs["tokens"] == (ids != 0).sum()
    assert logs["padding"] == pytest.approx((ids == 0).mean())


def test_weights_of_documents_count(seed, make):
    model, ids = make(), documents()
    model.compile(keras.optimizers.SGD(), run_eagerly=True)
    labels, weights = np.array([0, 1, 2, 0]), np.array([1.0, 0, 2.0, 1.0])
    logs = model.test_on_batch(
        {"source_ids": ids}, labels, weights, return_dict=True
    )
    log_probs = ops.log_softmax(model({"source_ids": ids}))
    losses = -ops.convert_to_numpy(log_probs)[np.arange(4), labels]
    assert logs["loss"] == pytest.approx(losses @ weights / 4, rel=1e-5)


def test_round_trip_through_a_file(seed, make, tmp_path):
    model, ids = make(dropout=0.1), {"source_ids": documents()}
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(model(ids), again(ids))
    assert again.get_config() == model.get_config()


def batches(sizes):
    """Documents of unequal lengths, which weigh unequally."""
    draw = np.random.default_rng(0)
    for size in sizes:
        ids = draw.integers(4, 30, (size, 3, 5), "int32")
        lengths = draw.integers(0, 6, (size, 3, 1))
        yield (
            {"source_ids": np.where(np.arange(5) < lengths, ids, 0)},
            draw.integers(0, 3, size, "int32"),
            draw.integers(1, 4, size).astype("float32"),
        )


@pytest.mark.slow  # tracing takes long; the step itself is ExactModel's
@pytest.mark.parametrize("kind", MODELS)
def test_two_devices_equal_one(kind, two_devices):
    """Also if a device gets fewer documents, or none."""
    make = functools.partial(make_model, kind)
    sizes = (4, 3, 5, 1, 2)
    expected = few_steps(make, batches(sizes))
    with two_devices.scope():
        found = few_steps(make, batches(sizes))
    check_same_steps(found, expected, atol=1e-5)


@pytest.mark.slow  # test_learning.py has other models
def test_overfits_one_batch(new_seed):
    model = make_model("flat")
    model.compile(keras.optimizers.Adam(0.02))
    batch = {"source_ids": documents()[[0, 1, 3]]}, np.array([0, 1, 2])
    for _ in range(60):
        loss = model.train_on_batch(*batch, return_dict=True)["loss"]
    assert loss < 3.0
    assert model.test_on_batch(*batch, return_dict=True)["accuracy"] == 1


def test_hierarchical_attention_agrees_with_the_paper(seed):
    model, ids = new_weights(*built("hierarchical")), documents()
    table, *of_words = model.sentence_encoder.get_weights()
    of_sentences = model.document_encoder.get_weights()
    kernel, bias = model.classes.get_weights()
    explained = numbers(model.explain({"source_ids": ids}))

    for place in (0, 3):
        read = [
            recurrent_pooling(table[words[words != 0]], of_words)
            for words in ids[place]
        ]
        sentences = np.stack([sentence for sentence, _ in read])
        document, shares = recurrent_pooling(sentences, of_sentences)
        np.testing.assert_allclose(
            explained["logits"][place], document @ kernel + bias, atol=1e-5
        )
        np.testing.assert_allclose(
            explained["sentence_weights"][place], shares, atol=1e-5
        )
        for found, (_, expected) in zip(
            explained["word_weights"][place], read, strict=True
        ):
            np.testing.assert_allclose(
                found[: len(expected)], expected, atol=1e-5
            )


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="Received: model_dim=10, num_heads=4"):
        TransformerClassifier(
            30, 2, num_layers=1, model_dim=10, ffn_dim=8, num_heads=4
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"vocab_size": 0},
        {"num_classes": 0},
        {"dropout": float("nan")},
        {"piece_dropout": -0.1},
        {"sentence_dropout": 2.0},
    ],
)
def test_arguments_out_of_range(arguments):
    [(name, value)] = arguments.items()
    for family, sizes in MODELS.values():
        fitting = {"vocab_size": 30, "num_classes": 3, **sizes}
        with pytest.raises(ValueError, match=f"Received: {name}={value}"):
            family(**fitting | arguments)


@pytest.mark.parametrize("kind", MODELS)
def test_sizes_out_of_range(kind):
    family, sizes = MODELS[kind]
    for name in sizes:
        for size in (0, 0.5):
            with pytest.raises(ValueError, match=f"Received: {name}={size}"):
                family(30, 3, **sizes | {name: size})
