import numpy as np
from sacrebleu.metrics import CHRF

from kseq.evaluation import expected_chrf


def test_same_as_the_mean_of_sacrebleu(seed):
    random = np.random.default_rng(seed)
    words = ["a", "rose", "is", "Straße", "日本", "12", "red,"]
    texts = [
        " ".join(random.choice(words, random.integers(0, 9))) for _ in range(12)
    ]
    texts += ["", " ", "x", texts[0]]
    chrf = CHRF()
    expected = [
        np.mean([chrf.sentence_score(text, [each]).score for each in texts])
        for text in texts
    ]
    np.testing.assert_allclose(expected_chrf(texts), expected, atol=1e-9)


def test_the_answer_in_the_middle_wins():
    texts = ["it is a red rose", "it is a rose", "it was a rose", "no"]
    assert int(np.argmax(expected_chrf(texts))) == 1


def test_one_candidate():
    assert expected_chrf(["a rose"]).tolist() == [100.0]
