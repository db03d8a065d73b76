import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import Dialogues
from kseq.evaluation import Retrievals
from kseq.serving import GeneratorPredictor

ANSWERS = [str(number) for number in range(200)]


def direction(text):
    """A number as a direction: neighbours are near each other."""
    angle = tf.strings.to_number(text) * math.pi / 200
    return {"vector": tf.stack([tf.cos(angle), tf.sin(angle)], axis=1)}


def predictor_of(encode, encode_answers=direction):
    signatures = {"encode": encode, "encode_answers": encode_answers}
    return GeneratorPredictor(signatures, batch_size=64)


@pytest.fixture
def right():
    """Of the number that a source is, it is the nearest."""
    return predictor_of(direction)


@pytest.fixture
def examples():
    return Dialogues(ANSWERS, ANSWERS)


def test_right_answers_are_the_nearest(right, examples):
    done = []
    found = Retrievals(right, examples)
    assert len(found) == 200
    assert found.scores(done.append) == {
        "recall_at_1": 1,
        "recall_at_5": 1,
        "recall_at_10": 1,
    }
    assert sum(done) == 200
    assert found.report() == [
        f"recall@{top} 100.00 %  candidates:100|seed:0" for top in (1, 5, 10)
    ]
    assert found.results["recall_at_5"].signature == "candidates:100|seed:0"
    assert found.rows(2) == [("0", "0", "0"), ("1", "1", "1")]
    assert found.pictures(4) == {}


def test_ranks_by_hand():
    """Answers at 0, 10, 20, ... degrees; sources next to the right one."""
    answers = [str(20 * number) for number in range(10)]
    sources = [*answers[1:], "180"]  # off by one, but for the last
    found = Retrievals(predictor_of(direction), Dialogues(sources, answers))
    scores = found.scores()
    # The right one is second or, at equal distances, third.
    assert scores["recall_at_1"] == 0.1
    assert scores["recall_at_5"] == 1
    assert found.rows(1) == [("20", "0", "20")]
    assert found.report()[-1].startswith("fewer than 100 candidates")


def test_a_guess_finds_as_many_as_there_are_places(examples):
    draw = np.random.default_rng()

    def guess(text):
        vectors = draw.normal(size=(len(text), 50)).astype("float32")
        return {"vector": tf.constant(vectors)}

    found = Retrievals(
        predictor_of(guess, guess),
        Dialogues(ANSWERS * 10, ANSWERS * 10),
        candidates=20,
    )
    scores = found.scores()
    for top in (1, 5, 10):
        assert scores[f"recall_at_{top}"] == pytest.approx(top / 20, abs=0.15)


@pytest.mark.parametrize("value", [0.0, 1.0, math.nan])
def test_equal_vectors_find_nothing(examples, value):
    def same(text):
        return {"vector": tf.fill((len(text), 2), value)}

    found = Retrievals(predictor_of(same, same), examples)
    assert set(found.scores().values()) == {0}


def test_candidates_are_drawn_once(examples):
    """The same for each model and each time, others for another seed."""

    def candidates(**options):
        def nearest_to_zero(text):
            return direction(tf.fill((len(text),), "0"))

        found = Retrievals(predictor_of(nearest_to_zero), examples, **options)
        found.scores()
        found.scores()
        return found.rows(200)

    assert candidates() == candidates()
    assert candidates() != candidates(seed=1)
    for _, answer, nearest in candidates(candidates=2):
        assert answer == "0" or int(nearest) <= int(answer)


def test_answers_that_come_twice_are_one_candidate(right):
    found = Retrievals(right, Dialogues(["1", "1", "2"], ["1", "1", "2"]))
    assert found.candidates == 2
    assert found.scores()["recall_at_1"] == 1
    alone = Retrievals(right, Dialogues(["1", "5"], ["1", "1"]))
    assert alone.scores()["recall_at_1"] == 1
    assert alone.report()[-1].startswith("fewer than 100 candidates")


def test_turns_are_shown_in_a_line():
    def last(turns):
        return direction(turns[:, 1])

    predictor = predictor_of(last)
    predictor.source = "turns"
    contexts = [["a", "7"], ["b", "8"]]
    predictor.signatures["encode"] = lambda turns: last(turns)
    found = Retrievals(predictor, Dialogues(contexts, ["7", "8"]))
    assert found.scores()["recall_at_1"] == 1
    assert found.rows(1) == [("a / 7", "7", "7")]


def test_what_cannot_be_judged(right):
    with pytest.raises(ValueError, match="Received: candidates=1"):
        Retrievals(right, Dialogues(["1"], ["1"]), candidates=1)
    with pytest.raises(ValueError, match="There must be at least one example"):
        Retrievals(right, Dialogues([], []))
