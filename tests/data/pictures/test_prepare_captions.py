"""Features of pictures, computed once."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.data import (
    DataError,
    NetworkOptions,
    Tokenizer,
    prepare_captions,
    read_caption_corpus,
    read_image_captions,
    tokenize_pairs,
    training_batches,
)
from kseq.data.pictures import picture_features
from kseq.data.pictures import prepare_captions as preparation
from kseq.data.pictures.caption_corpus import check_captions
from tests.data.tar import tar

SMALL = NetworkOptions("MobileNetV3Small", "", 1)
NAMES = [f"{number}.png" for number in range(5)]


@pytest.fixture(autouse=True)
def folder(here):
    draw = np.random.default_rng(1)
    for name in NAMES:
        pixels = draw.integers(0, 256, (16, 20, 3), "uint8")
        Path(name).write_bytes(tf.io.encode_png(pixels).numpy())
    rows = (f"{name}\tA {name[0]}.\n{name}\tThe {name[0]}.\n" for name in NAMES)
    Path("a.tsv").write_text("".join(rows))
    keras.utils.set_random_seed(1)


def batches_of(corpus):
    both = corpus.features, Tokenizer.train(corpus.train.lines(), 100, "char")
    pairs = tokenize_pairs(corpus.train.pairs(), *both)
    batches = training_batches(pairs, batch_tokens=40, max_length=20, seed=1)
    for inputs, labels, weights in batches.take(6).as_numpy_iterator():
        yield [inputs["source"], inputs["target_ids"], labels, weights]


def assert_same(corpus, opened):
    assert isinstance(opened.features.features, np.memmap)
    assert opened.describe() == corpus.describe()
    assert [*opened.train.references] == corpus.train.references
    for one, other in zip(batches_of(corpus), batches_of(opened), strict=True):
        for array, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, same)


@pytest.fixture
def one_layer(monkeypatch):
    """A layer in place of the network, which takes seconds to be made."""
    original = keras.applications.MobileNetV3Small

    def network(include_top, weights, input_shape):
        inputs = keras.Input(input_shape)
        layer = keras.layers.Conv2D(8, 9, strides=32, padding="same")
        return keras.Model(inputs, layer(inputs))

    network.__module__ = original.__module__
    monkeypatch.setattr(keras.applications, original.__name__, network)


def test_a_folder_trains_as_the_pictures_do(one_layer, monkeypatch):
    for module in (picture_features, preparation):
        monkeypatch.setattr(module, "BATCH", 2)
    corpus = read_caption_corpus("a.tsv", images=".", network=SMALL)
    keras.utils.set_random_seed(1)
    prepare_captions("out", "a.tsv", images=".", network=SMALL, part_size=1)
    pictures = corpus.validation.raw("image")
    for name in NAMES:
        Path(name).unlink()
    opened = read_caption_corpus("out", network=SMALL)
    assert_same(corpus, opened)
    assert opened.test.raw("image") == pictures
    config = corpus.preprocessor.get_config()
    assert opened.preprocessor.get_config() == config
    assert opened.files["network.npz"] == corpus.files["network.npz"]
    with pytest.raises(DataError, match="--network MobileNetV3Small; expected"):
        read_caption_corpus("out")
    with pytest.raises(DataError, match="images is part of a prepared"):
        read_caption_corpus("out", images=".")


@pytest.fixture
def archive():
    """An archive instead of the pictures and their table."""
    files = {}
    for name in NAMES:
        files[name] = Path(name).read_bytes()
        captions = [f"A {name[0]}.", f"The {name[0]}."]
        files[f"{name[0]}.json"] = json.dumps({"caption": captions}).encode()
        Path(name).unlink()
    Path("a.tar").write_bytes(tar(files))
    return files


def test_archives_have_pictures_and_captions(archive):
    assert check_captions("a.tar").describe() == [
        "Training pictures: 4, with 8 captions (a.tar)",
        "Validation pictures: 1, with 2 captions (held out of training by "
        "picture)",
    ]
    found = read_image_captions("a.tar", "")
    assert [*found.references] == [[f"A {n}.", f"The {n}."] for n in range(5)]
    assert found.raw("image") == [archive[name] for name in NAMES]
    with pytest.raises(DataError, match=r"Leave out images\."):
        read_caption_corpus("a.tar", images=".", network=SMALL)
    Path("a.tar").write_bytes(tar(archive | {"3.png": b"GIF89a"}))
    with pytest.raises(DataError, match=r"^a\.tar: 3\.png is .*, but GIF"):
        check_captions("a.tar")


@pytest.mark.slow
def test_archives_are_prepared(archive, monkeypatch):
    for module in (picture_features, preparation):
        monkeypatch.setattr(module, "BATCH", 2)
    corpus = read_caption_corpus("a.tar", network=SMALL)
    assert corpus.validation.raw("image")[0] in archive.values()
    keras.utils.set_random_seed(1)
    prepare_captions("out", "a.tar", network=SMALL, part_size=1)
    assert_same(corpus, read_caption_corpus("out", network=SMALL))


def test_ready_features_are_mapped():
    features = np.random.default_rng(1).integers(-99, 99, (5, 4, 3), "int8")
    arrays = {"scale": [0.5, 1.0, 2.0], "names": np.array(NAMES)}
    np.savez("a.npz", features=features, **arrays)
    corpus = read_caption_corpus("a.tsv", features="a.npz", plain=True)
    prepare_captions("out", "a.tsv", features="a.npz", plain=True)
    opened = read_caption_corpus("out")
    assert_same(corpus, opened)
    assert opened.preprocessor.get_config() == corpus.preprocessor.get_config()
    record = json.loads(Path("out/prepared.json").read_text())
    wrong = record | {"grid": record["grid"] | {"rows": -1}}
    Path("out/prepared.json").write_text(json.dumps(wrong))
    with pytest.raises(DataError, match=r"^out: rows must be .* rows=-1"):
        read_caption_corpus("out")
    record["arrays"]["features"]["shape"] = [5, 3, 4]
    Path("out/prepared.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="out is broken: its files do not"):
        read_caption_corpus("out")
