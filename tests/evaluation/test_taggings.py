import math

import pytest
import tensorflow as tf

from kseq.data import TaggedSentences
from kseq.evaluation import Taggings, fit_temperature
from kseq.serving import TaggerPredictor
from kseq.user_error import UserError

TAGS = ["B-x", "I-x", "O"]
SENTENCES = TaggedSentences(
    ["up on", "down", "up up on"],
    [["B-x", "O"], ["O"], ["B-x", "I-x", "O"]],
)


def distribution(text):
    """Sees B-x with 80 % in each word `up`; elsewhere O, with 70 %."""
    words = tf.strings.split(text).to_tensor("")[:, :3]
    is_up = (words == "up")[..., None]
    return {
        "words": words,
        "tagset": tf.repeat([TAGS], tf.size(text), axis=0),
        "probabilities": tf.where(is_up, [0.8, 0.1, 0.1], [0.2, 0.1, 0.7]),
        "truncated": tf.zeros(tf.shape(text), tf.bool),
    }


@pytest.fixture
def tagger():
    return TaggerPredictor({"distribution": distribution})


def test_the_temperature_of_its_tags(tagger):
    """Of six words one is wrong; a sentence may have none."""
    sentences = TaggedSentences([*SENTENCES.texts, ""], [*SENTENCES.tags, []])
    up, other = [0.8, 0.1, 0.1], [0.2, 0.1, 0.7]
    expected = fit_temperature(
        [up, other, other, up, up, other], [0, 2, 2, 0, 1, 2]
    )
    found = Taggings(tagger, sentences).fit_temperature()
    assert found == pytest.approx(expected, abs=1e-3)


def test_a_temperature_of_many_tags_is_fitted_to_a_sample(tagger, monkeypatch):
    """Of three sentences with six words only one with two of them fits."""
    monkeypatch.setattr("kseq.evaluation.calibration._MOST", 2 * len(TAGS))
    found = Taggings(tagger, SENTENCES)
    read, probabilities = [], tagger.probabilities
    monkeypatch.setattr(
        *(tagger, "probabilities"),
        lambda texts, _: read.extend(texts) or probabilities(texts),
    )
    assert 0.01 <= found.fit_temperature() <= 100
    assert len(read) == 1


@pytest.mark.parametrize("size", [2, 4096])
def test_scores_rows_and_report(tagger, size, monkeypatch):
    monkeypatch.setattr("kseq.evaluation.score._CHUNK", size)
    found = Taggings(tagger, SENTENCES)
    assert len(found) == 3
    # One of six words is wrong, which has the only I-x.
    assert found.scores() == pytest.approx(
        {
            "loss": -(2 * math.log(0.8) + 3 * math.log(0.7) + math.log(0.1))
            / 6,
            "accuracy": 5 / 6,
            "macro_f1": (4 / 5 + 0 + 1) / 3,
            "exact_match": 2 / 3,
            # Two spans are true, three are found, one is right.
            "span_f1": 2 / 5,
        }
    )
    assert found.rows(2) == [
        ("up on", "B-x O", "B-x O"),
        ("down", "O", "O"),
    ]
    assert found.rows(9)[2][1:] == ("B-x I-x O", "B-x B-x O")
    assert found.report() == [
        "accuracy 83.33 %",
        "macro F1 0.6000",
        "exact match 66.67 %",
        "span F1 0.4000",
        "calibration error 21.67 %  bins:15",
        "B-x: precision 0.6667  recall 1  f1 0.8  support 2",
        "I-x: precision 0  recall 0  f1 0  support 1",
        "O: precision 1  recall 1  f1 1  support 3",
    ]
    pictures = found.pictures(2)
    assert list(pictures) == ["confusion", "reliability"]
    assert all(png.startswith(b"\x89PNG\r\n") for png in pictures.values())


def test_progress_counts_sentences(tagger):
    done = []
    Taggings(tagger, SENTENCES).scores(done.append)
    assert sum(done) == 3


def test_without_the_scheme_there_are_no_spans(monkeypatch, tagger):
    monkeypatch.setattr(TaggerPredictor, "tags", ["NOUN", "VERB", "O"])
    tags = [["NOUN", "O"], ["O"], ["NOUN", "VERB", "O"]]
    found = Taggings(tagger, SENTENCES._replace(tags=tags))
    assert "span_f1" not in found.scores()


def test_a_tag_that_the_model_does_not_know(tagger):
    wrong = SENTENCES._replace(tags=[["B-x", "Z"], ["A"], ["O"] * 3])
    with pytest.raises(UserError, match="does not know: A, Z"):
        Taggings(tagger, wrong)


def test_a_sentence_that_is_longer_than_what_the_model_reads(tagger):
    long = TaggedSentences(["up up up up"], [["O"] * 4])
    with pytest.raises(UserError, match="reads 3 words of a sentence of 4"):
        Taggings(tagger, long).scores()
