import math

import pytest
import tensorflow as tf

from kseq.data import Dialogues
from kseq.evaluation import dialogue_evaluation, distinct_1, distinct_2
from kseq.serving import GeneratorPredictor

# The fact of each is in the first turn, in the second, and in the third.
DIALOGUES = Dialogues(
    contexts=[
        ["Ann has a cat.", "Fine.", "And Ann?"],
        ["Fine.", "Bo has a dog.", "And Bo?"],
        ["Hi.", "Fine.", "Cy has a hen.", "And Cy?"],
    ],
    answers=["a cat", "a dog", "a hen"],
    evidence=[0, 1, 2],
    facts=["cat", "dog", "hen"],
)
TOKENS = ["\u2581a", "\u2581", "cat", "</s>"]


def answer(turns):
    count = tf.shape(turns)[0]
    return {
        "text": tf.constant(["a cat", "a dog", "a dog"])[:count],
        "score": tf.zeros(count),
        "truncated": tf.zeros(count, tf.bool),
    }


def score(turns, target):
    words = tf.strings.split(target).row_lengths() + 1
    return {
        "score": tf.zeros(tf.shape(target)),
        "log_prob": -2 * tf.math.log(2.0) * tf.cast(words, tf.float32),
        "tokens": 2 * words,
        "truncated": tf.zeros(tf.shape(target), tf.bool),
    }


def attend(turns):
    """Two right answers of three; the first looks at its turn."""
    source = ["x", "</s>", "y", "z", "</s>", "", "w", "</s>"]
    count = tf.shape(turns)[0]
    weights = tf.constant([0.3, 0.3, 0.0, 0.0, 0.3, 0.0, 0.1, 0.0])
    target = [[*TOKENS[:2], word, "</s>"] for word in ("cat", "dog", "dog")]
    return {
        "source_tokens": tf.tile([source], (count, 1)),
        "target_tokens": tf.constant(target)[:count],
        "attention": tf.tile(weights[None, None], (count, 4, 1)),
        "truncated": tf.zeros(count, tf.bool),
    }


@pytest.fixture
def chatbot():
    signatures = {"serving_default": answer, "score": score, "explain": attend}
    return GeneratorPredictor(signatures, source="turns", batch_size=99)


def test_scores_rows_report_and_pictures(chatbot, monkeypatch):
    # In the order of the file, not by length.
    monkeypatch.setattr("kseq.serving.predict_batches._length", lambda *_: 0)
    found = dialogue_evaluation(chatbot, DIALOGUES)
    scores = found.scores()
    assert list(scores) == ["bleu", "distinct_1", "distinct_2", "exact_match"]
    assert scores["exact_match"] == pytest.approx(2 / 3)
    assert scores["distinct_1"] == pytest.approx(3 / 6)
    source = "Ann has a cat. / Fine. / And Ann?"
    assert found.rows(1) == [(source, "a cat", "a cat")]
    *_, perplexity, facts = found.report()
    assert perplexity == "perplexity 2.00 per token, 4.00 per word"
    assert facts == (
        "the turn with the fact has the highest weight in 50.0% of 2 right "
        "answers"
    )
    [picture] = found.pictures(1).values()
    assert picture.startswith(b"\x89PNG")


def test_an_export_without_log_probabilities(chatbot):
    """Of a version before it, or of somebody else."""
    del chatbot.signatures["explain"]
    chatbot.signatures["score"] = lambda turns, target: {
        "score": tf.zeros(tf.shape(target))
    }
    found = dialogue_evaluation(chatbot, DIALOGUES)
    found.scores()
    assert not any("perplexity" in line for line in found.report())
    assert found.pictures(1) == {}


def test_distinct_counts_words_and_pairs():
    outputs = ["a b a", "a b", ""]
    assert distinct_1(outputs, outputs).value == pytest.approx(2 / 5)
    assert distinct_2(outputs, outputs).value == pytest.approx(2 / 3)
    assert math.isclose(distinct_2(["a"], ["a"]).value, 0)
    with pytest.raises(ValueError, match="2 outputs, 1 references"):
        distinct_1(["a", "b"], ["a"])
