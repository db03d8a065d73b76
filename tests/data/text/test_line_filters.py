from collections import Counter

import numpy as np
import pytest

from kseq.data import DataError, LineFilters, kept_pairs

JAPANESE = "日本語のテキスト"


def kept(pairs, filters, seen=None):
    sides = [
        [text.encode() for text in side] for side in zip(*pairs, strict=True)
    ]
    found, counts = kept_pairs(*sides, filters, seen)
    assert found.dtype == bool
    assert np.count_nonzero(~found) == counts.total()
    return found.tolist(), counts


def test_every_reason_is_counted_once():
    pairs = [
        ("ein Hund", "a dog"),
        ("", "a"),
        ("a", "\u200b "),
        ("x" * 11, "y" * 11),
        ("abcdefg", "ab"),
        ("ab", "abcdefg"),
        ("gut", "люди"),
        ("same", "same\r"),
        (" ein Hund", "a dog\t"),
        ("ein Hund", "the dog"),
    ]
    filters = LineFilters(10, 3.0, ("Latin", "latin"))
    expected = Counter(
        empty=2,
        too_long=1,
        length_ratio=2,
        wrong_script=1,
        identical=1,
        duplicate=1,
    )
    assert kept(pairs, filters) == ([True] + [False] * 8 + [True], expected)
    assert filters.described(expected) == (
        "2 empty, 1 longer than 10 characters, 2 with a length ratio over 3, "
        "1 not in the scripts Latin and latin, 1 with a source equal to the "
        "target, 1 duplicates"
    )


def test_lengths_are_in_characters():
    limit = LineFilters(max_characters=8)
    assert kept([(JAPANESE, "a dog")], limit)[0] == [True]
    assert kept([(JAPANESE + "。", "a dog")], limit)[0] == [False]
    ratio = LineFilters(max_ratio=2)
    assert kept([(JAPANESE, "abcd"), (JAPANESE, "abc")], ratio)[0] == [
        *(True, False)
    ]


@pytest.mark.parametrize(
    ("script", "own", "other"),
    [
        ("Latin", "Straße ﬁn 2 \uff44\uff4d дм", "шли люди Ok"),
        ("Cyrillic", "Шли 1999 люди IBM", "ab ш"),
        ("Han", "中文字 ABC", "ひらがな"),
        ("Japanese", "ひらがなとカタカナ、漢字。ﾊﾝｶｸ", "한국어"),
        ("Korean", "한국어 漢字", "ひらがな"),
        ("Devanagari", "हिन्दी में", "text"),
        ("Arabic", "مرحبا", "שלום"),
        ("any", "한국어", None),
    ],
)
def test_scripts(script, own, other):
    sides = [(own, "x"), ("123 !", "x"), (own[0] + "1", "y")]
    filters = LineFilters(scripts=(script, "any"), max_ratio=100)
    assert kept(sides, filters)[0] == [True, True, True]
    flipped = LineFilters(scripts=("any", script), max_ratio=100)
    if other is not None:
        assert kept([(other, "x")], filters)[1] == {"wrong_script": 1}
        assert kept([("x", other)], flipped)[1] == {"wrong_script": 1}
    with pytest.raises(DataError, match=r"Received: 'Klingon'"):
        LineFilters(scripts=("any", "Klingon"))
    for wrong in ({"max_ratio": 0.9}, {"max_ratio": float("nan")}):
        with pytest.raises(DataError, match="max_ratio must be"):
            LineFilters(**wrong)
    with pytest.raises(ValueError, match="max_characters must be"):
        LineFilters(max_characters=-1)


def test_duplicates_of_several_blocks():
    filters, seen = LineFilters(), set()
    assert kept([("a", "b"), ("a", "c")], filters, seen)[0] == [True, True]
    found, counts = kept([("a", "c"), ("c", "a")], filters, seen)
    assert found == [False, True]
    assert counts == {"duplicate": 1}
    # The text of both sides alone does not tell where one of them ends.
    assert kept([("a", "bc"), ("ab", "c")], filters)[0] == [True, True]


def test_no_pairs_and_invalid_text():
    filters = LineFilters(scripts=("Latin", "Latin"))
    found, counts = kept_pairs([], [], filters)
    assert (found.shape, counts) == ((0,), {})
    found, _ = kept_pairs([b"a\xff\xfe"], [b"\xc3 b"], filters)
    assert found.tolist() == [True]
