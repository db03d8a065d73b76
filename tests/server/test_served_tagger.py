"""An export of tags behind TensorFlow Serving's REST contract."""

import keras
import numpy as np
import pytest

import kseq
from kseq import serving
from kseq.data import Tokenizer, WordPreprocessor
from kseq.data.tags.journeys import journeys
from kseq.models import LSTMTagger
from kseq.server import ModelStore

TEXTS = ["from Oslo to  New York", "", "Straße"]
TAGS = ("B-x", "O")


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    keras.utils.set_random_seed(1)
    tokenizer = Tokenizer.train(journeys("train", size=200).texts, 330)
    model = LSTMTagger(330, 2, embedding_dim=4, units=4, num_layers=1)
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    tagger = serving.Tagger(model, WordPreprocessor(tokenizer), TAGS)
    return serving.export(tagger, tmp_path_factory.mktemp("tags"))


@pytest.fixture(scope="module")
def store(export):
    store = ModelStore({"tags": export.parent})
    store.poll()
    yield store
    store.close()


def test_tags_of_several_sentences(store, export, open_client):
    client = open_client(store)
    answer = client.post("/v1/models/tags:predict", json={"instances": TEXTS})
    assert answer.status_code == 200, answer.text
    rows = answer.json()["predictions"]
    expected = kseq.load(export)(TEXTS)
    for text, row, tags in zip(TEXTS, rows, expected, strict=True):
        padding = [""] * (5 - len(tags))
        assert row["tags"] == tags + padding
        assert row["words"] == text.split() + padding
        assert row["probabilities"][len(tags) :] == [0.0] * len(padding)
        assert row["truncated"] is False


def test_the_distribution_in_columns(store, export, open_client):
    body = {"signature_name": "distribution", "inputs": {"text": TEXTS}}
    answer = open_client(store).post("/v1/models/tags:predict", json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()["outputs"]
    assert found["tagset"] == [[*TAGS]] * 3
    probabilities = np.array(found["probabilities"])
    assert probabilities.shape == (3, 5, 2)
    is_word = np.array(found["words"]) != ""
    np.testing.assert_allclose(probabilities.sum(axis=-1), is_word, atol=1e-5)
    expected = kseq.load(export).probabilities(TEXTS)
    np.testing.assert_allclose(probabilities[0], expected[0], atol=1e-5)
