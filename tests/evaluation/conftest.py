import pytest
import tensorflow as tf

from kseq.serving import ClassifierPredictor, GeneratorPredictor

LABELS = ["fire", "flood"]


def shout(text):
    return {
        "text": tf.strings.upper(text),
        "score": tf.zeros(tf.shape(text)),
        "truncated": tf.zeros(tf.shape(text), tf.bool),
    }


def attend(text):
    words = tf.strings.split(text).to_tensor()
    length = tf.shape(words)[1]
    return {
        "source_tokens": words,
        "target_tokens": tf.strings.upper(words),
        "attention": tf.eye(length, batch_shape=tf.shape(text)),
    }


def classify(text):
    is_fire = tf.cast(
        tf.strings.regex_full_match(text, ".*smoke.*"), tf.float32
    )
    fire = 0.1 + 0.7 * is_fire
    return {
        "label": tf.where(fire > 0.5, "fire", "flood"),
        "probability": tf.maximum(fire, 1 - fire),
        "labels": tf.repeat([LABELS], tf.size(text), axis=0),
        "probabilities": tf.stack([fire, 1 - fire], axis=1),
        "truncated": tf.zeros(tf.shape(text), tf.bool),
    }


def look(text):
    """Each word is looked at as far as it is from the end."""
    words = tf.strings.split(text).to_tensor()
    words = tf.where(words != "", tf.strings.join([" ", words]), "")
    real = tf.cast(words != "", tf.float32)
    weights = tf.cumsum(real, axis=1, reverse=True) * real
    answer = classify(text)
    return {
        "words": words[:, None],
        "word_weights": (
            weights / tf.reduce_sum(weights, axis=1, keepdims=True)
        )[:, None],
        "sentence_weights": tf.ones((tf.size(text), 1)),
        "label": answer["label"],
        "probability": answer["probability"],
    }


@pytest.fixture
def translator():
    """Answers with the text in capitals."""
    return GeneratorPredictor({"serving_default": shout, "explain": attend})


@pytest.fixture
def classifier():
    """Sees fire with 80 % where there is smoke, elsewhere a flood with 90 %."""
    return ClassifierPredictor({"serving_default": classify, "explain": look})
