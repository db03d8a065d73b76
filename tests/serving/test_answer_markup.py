import numpy as np
import pytest
import tensorflow as tf

from kseq.data.text.markup import Word
from kseq.serving.answer_markup import aligned_words, count_sentences
from kseq.serving.attention import Attention
from kseq.serving.generator_predictor import GeneratorPredictor
from kseq.user_error import ArgumentError


def test_words_are_aligned_by_their_pieces():
    attention = Attention(
        ["▁ro", "ter", "▁Hund", "</s>"],
        ["▁do", "g", "▁red", ".", "</s>"],
        np.array(
            [
                [0.1, 0.1, 0.8, 0.0],
                [0.2, 0.2, 0.5, 0.1],
                [0.4, 0.1, 0.3, 0.2],
                [0.0, 0.0, 0.1, 0.9],
                [0.0, 0.0, 0.0, 1.0],
            ]
        ),
    )
    words = aligned_words("roter Hund", "dog  red.", attention)
    assert words == [Word(0, 3, 6), Word(5, 8, 0), Word(8, 9, 6)]
    assert aligned_words("roter Hund", "", attention) == []
    assert aligned_words("", "dog", attention) == [Word(0, 3, 0)]


def test_words_of_normalized_text_are_aligned():
    attention = Attention(["▁a...", "▁b", "▁c"], ["▁a", "▁b", "▁c"], np.eye(3))
    words = aligned_words("a… b c", "a b c", attention)
    assert words == [Word(0, 1, 1), Word(2, 3, 3), Word(4, 5, 5)]


def test_characters_of_chinese_are_words():
    attention = Attention(["▁我", "爱你"], ["▁I", "▁you"], np.eye(2))
    words = aligned_words("我爱你", "I you", attention)
    assert [word.source for word in words] == [0, 2]


@pytest.fixture(params=[True, False], ids=["now", "version 0.2"])
def searches(request):
    """What was searched for, and a predictor, perhaps of an old export."""
    found = []

    def serving_default(text):
        found.extend(text.numpy().tolist())
        return {
            "text": text,
            "score": tf.zeros(len(text)),
            "truncated": tf.zeros(len(text), bool),
        }

    def explain(text):
        answers = serving_default(text)
        words = tf.strings.split(text).to_tensor()
        count = words.shape[1]
        return {
            **(answers if request.param else {}),
            "source_tokens": words,
            "target_tokens": words,
            "attention": tf.eye(count, batch_shape=[len(text)]),
        }

    signatures = {"serving_default": serving_default, "explain": explain}
    return found, GeneratorPredictor(signatures), request.param


def test_each_sentence_is_searched_once(searches):
    found, predictor, is_new = searches
    document = "<p>red <b>dog</b> here</p><p>no tags</p>"
    assert predictor.markup([document]) == [document]
    again = [] if is_new else [b"red dog here"]
    assert sorted(found) == sorted([b"no tags", b"red dog here", *again])
    found.clear()
    [answer] = predictor.answers(["red dog"], attention=True)
    assert answer.hypotheses[0].text == "red dog"
    np.testing.assert_array_equal(answer.explanation.weights, np.eye(2))
    assert found == [b"red dog"] * (1 if is_new else 2)


@pytest.mark.parametrize("answer", ["markup", "paragraphs"])
def test_one_text_is_not_a_list_of_characters(searches, answer):
    with pytest.raises(ValueError, match="must be a list"):
        getattr(searches[1], answer)("red dog")


@pytest.mark.parametrize("answer", ["markup", "paragraphs"])
def test_what_is_no_text_is_refused(searches, answer):
    with pytest.raises(ArgumentError, match=r"must be a string.*: 3"):
        getattr(searches[1], answer)(["red dog", 3])


def test_bytes_are_text(searches):
    predictor = searches[1]
    assert predictor.markup([b"<b>red</b> dog"]) == ["<b>red</b> dog"]


def test_progress_has_the_number_of_sentences(searches):
    document = "<p>red <b>dog</b>. A cat.</p> <!-- no --> <p>no tags</p>"
    done = []
    searches[1].markup([document], done.append)
    assert count_sentences(document) == sum(done) == 3
    assert count_sentences("<p> </p>") == 0
