import pytest

from kseq.evaluation import translation_scores


def test_perfect_translations():
    texts = ["the cat sat on the mat .", "a dog barks at the moon ."]
    scores = translation_scores(texts, texts)
    assert scores["bleu"] == pytest.approx(100)
    assert scores["chrf"] == pytest.approx(100)
    assert scores["exact_match"] == 1


def test_bleu_with_a_pencil():
    """4 of 5 words, 3 of 4 pairs, 2 of 3 triples and 1 of 2 quadruples."""
    scores = translation_scores(["a b c d x"], ["a b c d e"])
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert scores["bleu"] == pytest.approx(expected)
    assert scores["exact_match"] == 0


def test_signatures_tell_case_and_tokenizer():
    scores = translation_scores(["a"], ["a"])
    assert "case:mixed" in scores["bleu_signature"]
    assert "tok:13a" in scores["bleu_signature"]
    assert "version:" in scores["chrf_signature"]


@pytest.mark.parametrize("outputs", [[], ["a"], ["a", "b", "c"]])
def test_as_many_outputs_as_references(outputs):
    with pytest.raises(ValueError, match=f"{len(outputs)} outputs"):
        translation_scores(outputs, ["a", "b"] if outputs else [])
