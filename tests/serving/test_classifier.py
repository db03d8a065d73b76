import json

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax
from tensorflow.core.protobuf import saved_model_pb2

from kseq.data.documents.dispatch_reports import dispatch_reports
from kseq.loading import load_export
from kseq.serving import (
    Classifier,
    ClassifierPredictor,
    export,
)
from tests.serving.conftest import LABELS
from tests.slow import slow

TEXTS = [
    *dispatch_reports("train", size=54).texts[50:],
    "",
    " <br>\n",
    "nul \0 and 😀. 日本語です。",
    "e. " * 150,
]


# A hierarchical one answers as a run and as an export in test_old_versions.py.
@pytest.fixture(params=[slow("hierarchical"), "flat"])
def kind(request):
    return request.param


def classify(classifier, texts):
    text = tf.constant(texts, tf.string)
    return classifier.signatures["serving_default"](text=text)


def explain(classifier, texts):
    text = tf.constant(texts, tf.string)
    return classifier.signatures["explain"](text=text)


def test_labels_and_probabilities(classifiers, kind):
    answer = classify(classifiers[kind], TEXTS)
    probabilities = answer["probabilities"].numpy()

    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(answer["probability"], probabilities.max(1))
    assert [label.decode() for label in answer["label"].numpy()] == [
        LABELS[place] for place in probabilities.argmax(axis=1)
    ]
    for row in answer["labels"].numpy():
        assert [label.decode() for label in row] == list(LABELS)
    assert answer["truncated"].numpy().tolist() == [False] * 7 + [True]


def test_of_equal_probabilities_the_first_label_is_the_answer():
    row = {
        "label": tf.constant(["a"]),
        "probability": tf.constant([0.4]),
        "labels": tf.constant([["a", "b", "c"]]),
        "probabilities": tf.constant([[0.4, 0.4, 0.2]]),
        "truncated": tf.constant([False]),
    }
    predictor = ClassifierPredictor({"serving_default": lambda text: row})
    [answer] = predictor.answers(["x"], n_best=3)

    assert [each.text for each in answer.hypotheses] == ["a", "b", "c"]
    assert answer.record["label"] == predictor(["x"])[0] == "a"


def test_a_temperature_scales_logits(classifiers):
    flat = classifiers["flat"]
    cold = classify(flat, TEXTS)["probabilities"].numpy()
    warm = Classifier(flat.model, flat.preprocessor, LABELS, temperature=0.5)
    assert warm.get_config() == {**flat.get_config(), "temperature": 0.5}
    found = explain(warm, TEXTS)["probability"]
    expected = softmax(2 * np.log(cold), axis=1).max(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"temperature must be a number from"):
        Classifier(flat.model, flat.preprocessor, LABELS, temperature=0)


def test_a_text_alone_and_in_a_batch(classifiers, kind):
    together = classify(classifiers[kind], TEXTS)["probabilities"]
    for text, expected in zip(TEXTS, together, strict=True):
        alone = classify(classifiers[kind], [text])["probabilities"][0]
        np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_no_texts(classifiers, kind):
    assert classify(classifiers[kind], [])["label"].shape == (0,)
    assert explain(classifiers[kind], [])["words"].shape[0] == 0


def test_explains_its_answer(classifiers, kind):
    explained = explain(classifiers[kind], TEXTS)
    answer = classify(classifiers[kind], TEXTS)
    for name in ("label", "probability"):
        np.testing.assert_array_equal(explained[name], answer[name])

    sentences = explained["sentences"].numpy()
    assert [s.decode() for s in sentences[0] if s] == [
        f"{sentence}." for sentence in TEXTS[0].removesuffix(".").split(". ")
    ]
    joined = tf.strings.reduce_join(explained["words"], axis=-1)
    joined = tf.strings.strip(joined).numpy()
    has_bytes = "😀".encode() in sentences[6, 0]  # of characters: "<0xF0>"
    assert has_bytes and b"<0xF0>" in joined[6, 0]
    np.testing.assert_array_equal(joined[:6], sentences[:6])
    assert not explained["sentence_weights"].numpy()[sentences == b""].any()
    assert (
        not explained["word_weights"]
        .numpy()[explained["words"].numpy() == b""]
        .any()
    )


def test_examples_of_tensorflow_serving(classifiers, kind):
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "text": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[text.encode()])
                    )
                }
            )
        ).SerializeToString()
        for text in TEXTS
    ]
    answer = classifiers[kind].signatures["classify"](
        inputs=tf.constant(examples)
    )
    expected = classify(classifiers[kind], TEXTS)
    np.testing.assert_array_equal(answer["classes"], expected["labels"])
    np.testing.assert_array_equal(answer["scores"], expected["probabilities"])


def test_each_class_has_a_label(classifiers):
    known = classifiers["flat"]
    with pytest.raises(ValueError, match="the 3 classes"):
        Classifier(known.model, known.preprocessor, ("yes", "no"))


# The export.


@pytest.mark.slow  # test_load.py compares labels
def test_same_answers_after_loading(classifiers, loaded_classifier):
    check_answers(classifiers["flat"], loaded_classifier)


@pytest.mark.slow
def test_another_model_has_the_same_answers(classifiers, tmp_path):
    classifier = classifiers["hierarchical"]
    check_answers(classifier, load_export(export(classifier, tmp_path)))


def check_answers(classifier, loaded_classifier):
    assert isinstance(loaded_classifier, ClassifierPredictor)
    signatures = classifier.signatures
    assert loaded_classifier.signatures.keys() == signatures.keys()
    for name in ("serving_default", "explain"):
        expected = signatures[name](text=tf.constant(TEXTS))
        answer = loaded_classifier.signatures[name](text=tf.constant(TEXTS))
        assert answer.keys() == expected.keys()
        for key, value in expected.items():
            if value.dtype == tf.float32:
                np.testing.assert_allclose(answer[key], value, atol=1e-5)
            else:
                np.testing.assert_array_equal(answer[key], value)


def test_graph_has_no_python_and_no_files(classifier_export):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((classifier_export / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    ops = {node.op for node in graph.node}
    ops |= {n.op for f in graph.library.function for n in f.node_def}
    assert "SentenceFragmentsV2" in ops
    assert not ops & {"PyFunc", "EagerPyFunc", "ReadFile", "WriteFile"}


def test_describes_itself(classifier_export):
    path = classifier_export / "assets.extra" / "kseq.json"
    description = json.loads(path.read_text("utf-8"))
    assert description["labels"] == list(LABELS)
    assert description["preprocessor"] == {
        "class": "DocumentPreprocessor",
        "in_lines": False,
        "max_sentences": 100,
        "max_pieces": 60,
    }
    assert description["vocab_sizes"] == {"source": 400}
