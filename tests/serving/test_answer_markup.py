import numpy as np

from kseq.data.text.markup import Word
from kseq.serving.answer_markup import aligned_words
from kseq.serving.attention import Attention


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
