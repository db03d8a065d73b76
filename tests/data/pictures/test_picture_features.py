"""Pictures of a folder, and the features that a network makes of them."""

import io

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import DataError, NetworkOptions, read_caption_corpus
from kseq.data.files.media_folder import MediaFolder, read_picture
from kseq.data.pictures.picture_network import PictureNetwork

SMALL = NetworkOptions("MobileNetV3Small", weights="", cells=2)


@pytest.fixture
def folder(here):
    (here / "pictures").mkdir()
    draw = np.random.default_rng(1)
    for number in range(3):
        pixels = draw.integers(0, 255, (30, 40, 3), np.uint8)
        png = tf.io.encode_png(pixels).numpy()
        (here / "pictures" / f"{number}.png").write_bytes(png)
    rows = [f"{number}.png\tdog {number}" for number in range(3)]
    (here / "a.tsv").write_text("\n".join(rows))
    return here


def test_features_are_computed_once_and_kept(folder, tmp_path):
    corpus = read_caption_corpus("a.tsv", images="pictures", network=SMALL)
    stored, preprocessor = corpus.features, corpus.preprocessor
    assert stored.features.shape == (3, 4, 576)
    assert corpus.files.keys() == {"features.npz", "network.npz"}
    images = [corpus.train.picture(name) for name in stored.names]
    served = preprocessor(tf.constant(images)).inputs["source"]
    trained = [stored.preprocessor(stored[i][None]) for i in range(3)]
    trained = np.concatenate([each.inputs["source"] for each in trained])
    np.testing.assert_allclose(trained, served, atol=2e-2)
    assert np.sqrt(np.mean(trained**2)) == pytest.approx(1, abs=1e-3)

    # The same in a run that resumes, with other random weights at first.
    for name, content in corpus.files.items():
        (tmp_path / name).write_bytes(content)
    again = read_caption_corpus(
        "a.tsv", images="pictures", network=SMALL, kept=tmp_path
    )
    assert not again.files
    found = again.preprocessor(tf.constant(images)).inputs["source"]
    np.testing.assert_allclose(found, served, atol=1e-5)
    assert again.preprocessor.get_config() == preprocessor.get_config()


def test_ready_features_and_a_folder_to_draw_on(folder):
    np.savez(
        "a.npz",
        features=np.ones((3, 4, 2)),
        names=[f"{number}.png" for number in range(3)],
    )
    corpus = read_caption_corpus("a.tsv", features="a.npz", images="pictures")
    assert not corpus.files
    name = corpus.train.names[0]
    expected = (folder / "pictures" / name).read_bytes()
    assert corpus.train.picture(name) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), r"a.tsv:2: .*'1.png'"),
        (
            lambda path: path.write_bytes(b""),
            "1.png is not a readable JPEG or PNG",
        ),
        (
            lambda path: path.write_bytes(b"text"),
            "1.png is not a readable JPEG",
        ),
        (
            lambda path: path.write_bytes(path.read_bytes()[:200]),
            "1.png is not a readable JPEG or PNG",
        ),
    ],
)
def test_a_bad_picture_is_named(folder, change, message):
    change(folder / "pictures" / "1.png")
    with pytest.raises(DataError, match=message):
        read_caption_corpus("a.tsv", images="pictures", network=SMALL)


@pytest.mark.parametrize("path", ["", "none", "a.tsv", "a\0b"])
def test_what_is_no_folder(folder, path):
    with pytest.raises(DataError, match="not a folder"):
        MediaFolder(path, read_picture, "picture")


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("", None, "such as EfficientNetB0"),
        ("Model", None, "such as EfficientNetB0"),
        ("EfficientNetB99", None, "such as EfficientNetB0"),
        ("MobileNetV3Small", "none.h5", "none.h5"),
        ("MobileNetV3Small", "a.tsv", "a.tsv"),
    ],
)
def test_networks_that_there_are_not(folder, name, weights, message):
    with pytest.raises(DataError, match=message):
        PictureNetwork(name, 64, 64, weights)


def test_broken_weights_of_a_network(folder):
    network = PictureNetwork("MobileNetV3Small", 64, 64)
    content = network.save()
    other = bytearray(content)
    other[len(other) // 2] ^= 1
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    for broken in (b"", content[:1000], bytes(other), array.getvalue()):
        (folder / "network.npz").write_bytes(broken)
        with pytest.raises(DataError, match="cannot be read as the weights"):
            network.load("network.npz")
    with pytest.raises(DataError, match="cannot be read"):
        network.load("none.npz")
