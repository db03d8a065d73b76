import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.data.documents import Documents
from kseq.evaluation import label_report
from kseq.runs import RunDirectory
from kseq.training import LabelValidation

LABELS = ("no", "yes")
DOCUMENTS = Documents(
    texts=["yes. it is a\tb|<c>", "no. never", "so", "yes. it is"],
    labels=["yes", "no", "no", "no"],
    evidence=[(0, "yes"), (1, "never"), (0, "so"), (1, "is")],
)


class Classifier:
    """Finds "yes" in a text, and looks at the first sentence alone."""

    labels = LABELS
    model = None

    def classify(self, text):
        has_yes = tf.strings.regex_full_match(text, "yes.*")
        probabilities = tf.where(has_yes[:, None], [[0.25, 0.75]], [[0.5, 0.5]])
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(LABELS), best),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "labels": tf.broadcast_to(LABELS, tf.shape(probabilities)),
            "probabilities": probabilities,
        }

    def explain(self, text):
        sentences = tf.strings.split(text, ". ").to_tensor()
        words = tf.strings.regex_replace(sentences, " ", "\n ")
        words = tf.strings.split(words, "\n").to_tensor()
        first = tf.one_hot(tf.zeros(len(text), tf.int32), sentences.shape[1])
        answer = self.classify(text)
        return {
            "sentences": sentences,
            "sentence_weights": first,
            "words": words,
            "word_weights": tf.one_hot(
                tf.zeros_like(sentences, tf.int32), words.shape[2]
            ),
            "label": answer["label"],
            "probability": answer["probability"],
        }


@pytest.fixture
def logs(tmp_path):
    callback = LabelValidation(
        RunDirectory(tmp_path), Classifier(), DOCUMENTS, pictures=2
    )
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(), "mse")
    model.fit(np.ones((1, 1)), np.ones(1), verbose=0)
    callback.set_model(model)
    logs = {}
    callback.on_epoch_end(0, logs)
    return logs


def test_scores_go_into_the_logs(logs):
    losses = -np.log([0.75, 0.5, 0.5, 0.25])
    assert logs["val_loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert logs["val_accuracy"] == 0.75
    assert logs["val_macro_f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_samples_and_pictures_are_shown(logs, tmp_path):
    from tensorboard.backend.event_processing import event_accumulator

    table = (tmp_path / "samples" / "00000001.md").read_text()
    assert "| yes. it is a\tb&#124;&lt;c&gt; | yes | yes |" in table
    assert len(table.splitlines()) == 2 + 4
    events = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert {"confusion", "documents/0", "documents/1", "samples"} <= set(
        events.Tags()["tensors"]
    )


def test_report(tmp_path, capsys):
    label_report("saved/1", Classifier(), RunDirectory("runs/x"), DOCUMENTS)
    printed = capsys.readouterr().out
    assert "accuracy 75.00%" in printed
    assert "macro F1 0.7333" in printed
    # The first sentence decides in two, and the first word of the one that
    # does in three: all but the "is" of the last.
    assert "the sentence that decides weighs most in 50.0%" in printed
    assert "the word that decides weighs most in     75.0%" in printed
    assert "yes          yes. it is a b|<c>" in printed
    assert "kseq explain saved/1" in printed


def test_a_run_keeps_labels_and_tokenizer(tmp_path):
    run = RunDirectory(tmp_path)
    pieces = types.SimpleNamespace(model=b"pieces")
    tokenizer = types.SimpleNamespace(
        tokenizer=pieces, get_config=lambda: {"max_words": 7}
    )
    run.save_document_tokenizer(tokenizer, LABELS)
    run.save_document_tokenizer(tokenizer, LABELS)
    assert json.loads(run.documents.read_text()) == {
        "labels": ["no", "yes"],
        "max_words": 7,
    }
    with pytest.raises(ValueError, match=r"labels\.0: no -> maybe"):
        run.save_document_tokenizer(tokenizer, ("maybe", "yes"))
