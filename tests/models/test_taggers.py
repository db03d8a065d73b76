"""Properties of every tagger of words."""

import functools

import keras
import numpy as np
import pytest

from kseq.models import LSTMTagger, TransformerTagger
from kseq.models.training_errors import check_ids
from tests.half_precision import HALF_POLICIES
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.new_weights import new_weights
from tests.slow import others_slow, slow

MODELS = {
    "lstm": (LSTMTagger, {"embedding_dim": 6, "units": 8, "num_layers": 2}),
    "transformer": (
        TransformerTagger,
        {"num_layers": 2, "model_dim": 8, "ffn_dim": 8, "num_heads": 2},
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


@pytest.fixture(params=["lstm", slow("transformer")])
def make(request):
    return lambda **more: new_weights(*built(request.param, **more))


def sentences(words=(5, 1, 0, 3), seed=None):
    """Words of 1 to 4 pieces; the third sentence has none."""
    draw = np.random.default_rng(seed)
    ids = draw.integers(4, 30, (len(words), 5, 4), "int32")
    ids = np.where(
        np.arange(4) < draw.integers(1, 5, (*ids.shape[:2], 1)), ids, 0
    )
    counts = np.reshape(words, (-1, 1, 1))
    return np.where(np.arange(5)[:, None] < counts, ids, 0).astype("int32")


def logits(model, ids):
    return keras.ops.convert_to_numpy(model({"source_ids": ids}))


@pytest.mark.parametrize("dtype", others_slow(TOLERANCE, ["float32"]))
def test_padding_changes_nothing(seed, make, dtype):
    """Neither more words nor more pieces, nor other sentences."""
    model, ids = make(dtype=dtype), sentences()
    padded = np.pad(ids, ((0, 0), (0, 7), (0, 3)))
    real = (ids != 0).any(axis=-1)
    tolerance = {"atol": TOLERANCE[dtype]}
    expected = logits(model, ids)
    found = logits(model, padded)[:, :5]
    np.testing.assert_allclose(found[real], expected[real], **tolerance)
    for row in (0, 1, 3):
        alone = logits(model, ids[row : row + 1, : real[row].sum()])
        np.testing.assert_allclose(
            alone[0], expected[row][real[row]], **tolerance
        )
    assert found.dtype == "float32"
    assert np.isfinite(logits(model, padded)).all()


def test_each_word_changes_the_tags_of_all(seed, make):
    """On either side of it."""
    model, ids = make(), sentences(words=(5,))
    others = np.repeat(ids, 6, axis=0)
    for place in range(5):
        others[place, place, 0] = 4 + (ids[0, place, 0] - 3) % 26
    found = logits(model, others)
    difference = np.abs(found[:5] - found[5]).max(axis=-1)
    assert (difference > 1e-6).all()


def test_a_word_is_all_of_its_pieces(seed, make):
    model, ids = make(), sentences(words=(5,))
    ids[0, 2] = 5, 6, 7, 8
    other = ids.copy()
    other[0, 2, 3] = 9
    difference = np.abs(logits(model, ids) - logits(model, other))[0]
    assert (difference.max(axis=-1) > 1e-6).all()


def test_the_same_pieces_in_other_words_are_read_at_other_places(seed):
    """The state of a word is that of its first piece."""
    model = new_weights(*built("lstm"))
    two = np.array([[[5, 6], [7, 0]]])
    three = np.array([[[5, 0], [6, 0], [7, 0]]])
    found = logits(model, three)[0]
    np.testing.assert_allclose(logits(model, two)[0], found[[0, 2]], atol=1e-6)


@pytest.mark.parametrize("dtype", [slow("float32"), *HALF_POLICIES])
def test_training_stays_finite_with_empty_sentences(seed, make, dtype):
    model, ids = make(dtype=dtype, dropout=0.3, piece_dropout=0.1), sentences()
    adam = keras.optimizers.Adam(0.01)
    # Tracing would take longer than the step.
    model.compile(adam, clip_norm=1.0, run_eagerly=True)
    weights = (ids != 0).any(axis=-1).astype("float32")
    batch = {"source_ids": ids}, np.ones((4, 5), int), weights
    logs = model.train_on_batch(*batch, return_dict=True)
    assert all(np.isfinite(value) for value in logs.values()), logs
    assert all(np.isfinite(w).all() for w in model.get_weights())
    assert logs["tokens"] == 9


def test_round_trip_through_a_file(seed, make, tmp_path):
    model, ids = make(dropout=0.1), {"source_ids": sentences()}
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(model(ids), again(ids))
    assert again.get_config() == model.get_config()


def batches(sizes):
    """Sentences of unequal lengths."""
    for seed, size in enumerate(sizes):
        draw = np.random.default_rng(seed)
        ids = sentences(words=draw.integers(0, 6, size), seed=seed)
        real = (ids != 0).any(axis=-1)
        labels = draw.integers(0, 3, real.shape, "int32")
        yield {"source_ids": ids}, labels, real.astype("float32")


@pytest.mark.slow  # tracing takes long; the step itself is ExactModel's
@pytest.mark.parametrize("kind", MODELS)
def test_two_devices_equal_one(kind, two_devices):
    """Also if a device gets fewer sentences, or none."""
    make = functools.partial(make_model, kind)
    sizes = (4, 3, 5, 1, 2)
    expected = few_steps(make, batches(sizes))
    with two_devices.scope():
        found = few_steps(make, batches(sizes))
    check_same_steps(found, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_learns_what_the_next_word_decides(new_seed, kind):
    """The tag of a word is the class of the next one; no word tells its own."""
    model = make_model(kind)
    model.compile(keras.optimizers.Adam(0.01))
    pieces = np.random.randint(4, 30, size=(64, 6))
    labels = np.pad(pieces[:, 1:] % 3, ((0, 0), (0, 1)))
    batch = {"source_ids": pieces[:, :, None]}, labels, np.ones((64, 6))
    for _ in range(150):
        logs = model.train_on_batch(*batch, return_dict=True)
    assert logs["accuracy"] > 0.9


def test_arguments_out_of_range():
    for name, value in (
        ("vocab_size", 0),
        ("num_tags", 0),
        ("dropout", float("nan")),
        ("piece_dropout", 1.5),
    ):
        for family, sizes in MODELS.values():
            fitting = {"vocab_size": 30, "num_tags": 3, **sizes}
            with pytest.raises(ValueError, match=f"Received: {name}={value}"):
                family(**fitting | {name: value})
    with pytest.raises(ValueError, match="Received: units=7"):
        LSTMTagger(30, 3, embedding_dim=4, units=7, num_layers=1)
    with pytest.raises(ValueError, match="Received: model_dim=10, num_heads=4"):
        TransformerTagger(
            30, 3, num_layers=1, model_dim=10, ffn_dim=8, num_heads=4
        )


@pytest.mark.parametrize("kind", MODELS)
def test_a_tag_that_the_model_does_not_know(kind):
    model = make_model(kind)
    batch = {"source_ids": sentences()}, np.full((4, 5), 3)
    with pytest.raises(ValueError, match=r"labels .* 0 to 2.* 3 classes"):
        check_ids(model, batch)


@pytest.mark.parametrize("kind", MODELS)
def test_sizes_out_of_range(kind):
    family, sizes = MODELS[kind]
    for name in sizes:
        for size in (0, -1, 0.5):
            with pytest.raises(ValueError, match=f"Received: {name}={size}"):
                family(30, 3, **sizes | {name: size})
