import pytest

from kseq.pictures.piece_texts import words_of


@pytest.mark.parametrize(
    ("tokens", "words", "starts"),
    [
        ([], [], []),
        (["▁a"], ["a"], [0]),
        (["▁", "▁"], [], []),
        (["a", "▁b", "c", ".", "▁"], ["a", "bc."], [0, 1]),
        (["▁", "▁", "▁a", "▁", "b"], ["a", "b"], [0, 3]),
        (["▁", "a", "b", "▁", "c"], ["ab", "c"], [0, 3]),  # characters
        (["▁a", "<unk>", "b"], ["a", "⁇", "b"], [0, 1, 2]),
        (["▁", "<unk>", "<unk>"], ["⁇", "⁇"], [0, 2]),
        (["<0xE2>", "<0x82>", "<0xAC>", "▁<0x"], ["€", "<0x"], [0, 3]),
        (["▁\ufdd0", "\u3000", "日本"], ["▁", "日本"], [0, 1]),
    ],
)
def test_words(tokens, words, starts):
    assert words_of(tokens) == (words, starts)
