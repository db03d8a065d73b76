import gzip

import numpy as np
import pytest

from kseq.data import DataError, Tokenizer, word_vectors

LINES = ["the rose is a rose .", "The unseen Paris is a tulip ."] * 3
DIM = 4
# "rose" also with a second line, and words that are not in the vocabulary.
WORDS = {
    "rose": [1, 2, 3, 4],
    "the": [0, 0, 5, 1],
    "paris": [2, 2, 0, 0],
    ".": [1, 0, 1, 0],
    "dahlia": [9, 9, 9, 9],
}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, 99, "word")


def text_of(words):
    return "".join(
        f"{word} {' '.join(map(str, numbers))}\n"
        for word, numbers in words.items()
    )


def initial_of(tokenizer):
    draw = np.random.default_rng(0)
    return draw.normal(size=(tokenizer.vocab_size, DIM)).astype("float32")


def read(path, tokenizer):
    """{piece: its row}, the number found, and the rows before by piece."""
    initial = initial_of(tokenizer)
    vectors, found = word_vectors(path, tokenizer, initial)
    assert vectors.shape == initial.shape and vectors.dtype == np.float32
    pieces = tokenizer.pieces(range(tokenizer.vocab_size)).numpy()
    names = [piece.decode().lstrip("\u2581") for piece in pieces]
    rows = dict(zip(names, vectors, strict=True))
    return rows, found, dict(zip(names, initial, strict=True))


def test_rows_of_words_are_those_of_the_file_but_for_their_scale(
    tmp_path, tokenizer
):
    path = tmp_path / "glove.txt"
    path.write_text(text_of(WORDS) + "rose 7 7 7 7\n")
    rows, found, _ = read(path, tokenizer)
    assert found == 5  # the, The, Paris, rose and the full stop
    names = "rose", "the", "The", "Paris", "."
    expected = np.array([WORDS[name.lower()] for name in names], "float32")
    expected /= np.sqrt(DIM * np.mean(expected**2))
    actual = [rows[name] for name in names]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_the_word_itself_comes_before_its_lower_case(tmp_path, tokenizer):
    path = tmp_path / "glove.txt"
    path.write_text("The 1 0 0 0\nthe 0 1 0 0\n")
    rows, found, _ = read(path, tokenizer)
    assert found == 2
    assert np.argmax(rows["The"]) == 0 and np.argmax(rows["the"]) == 1


def test_other_rows_are_rotated_to_the_vectors_of_the_file(tmp_path):
    """Where the file has the same vectors, rotated, all rows fit it."""
    words = [f"w{number}" for number in range(12)]
    tokenizer = Tokenizer.train([" ".join(words)] * 2, 99, "word")
    draw = np.random.default_rng(1)
    rotation, _ = np.linalg.qr(draw.normal(size=(DIM, DIM)))
    before = initial_of(tokenizer)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size)).numpy()
    names = [piece.decode().lstrip("\u2581") for piece in pieces]
    rotated = {
        name: row
        for name, row in zip(names, before @ rotation, strict=True)
        if name in words[:8]
    }
    path = tmp_path / "rotated.txt"
    path.write_text(text_of(rotated))
    after, found = word_vectors(path, tokenizer, before)
    assert found == 8
    others = [i for i, name in enumerate(names) if name not in rotated]
    np.testing.assert_allclose(
        after[others], before[others] @ rotation, atol=1e-4
    )


def test_only_the_first_piece_of_a_word_and_punctuation_are_words(tmp_path):
    """The file has "s", which is also the end of words."""
    tokenizer = Tokenizer.train(["roses, tulips", "s s s , t"] * 4, 290)
    path = tmp_path / "glove.txt"
    path.write_text(text_of({"s": [1, 0, 0, 0], ",": [0, 1, 0, 0]}))
    _, found = word_vectors(path, tokenizer, initial_of(tokenizer))
    pieces = tokenizer.pieces(range(tokenizer.vocab_size)).numpy().tolist()
    spelled = [p for p in pieces if p.decode() in ("\u2581s", ",", "\u2581,")]
    assert b"s" in pieces and len(spelled) > 1
    assert found == len(spelled)


@pytest.mark.parametrize(
    "content",
    [
        "5 4\n" + text_of(WORDS),
        text_of(WORDS).replace("\n", " \n"),  # fastText
        text_of(WORDS).replace("\n", "\r\n"),
        text_of(WORDS).replace(" ", "\t"),
        text_of(WORDS) + ". . . 1 2 3 4\nat name@domain.com 1 2 3 4\n",
        "\ufeff" + text_of(WORDS),
        "dahlia 1 nan 3 4\n" + text_of(WORDS),  # not needed, not looked at
    ],
)
def test_other_formats_give_the_same(tmp_path, tokenizer, content):
    plain, other = tmp_path / "a.txt", tmp_path / "b.vec.gz"
    plain.write_text(text_of(WORDS))
    with gzip.open(other, "wt", encoding="utf-8") as file:
        file.write(content)
    rows, found, _ = read(plain, tokenizer)
    other_rows, other_found, _ = read(other, tokenizer)
    assert found == other_found
    for name in rows:
        np.testing.assert_array_equal(rows[name], other_rows[name])


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"glove.txt is empty\."),
        ("rose 1 2 3\n", r"txt:1: .* 3 numbers, .* model 4: set --dim 3\."),
        ("rose\n", r"txt:1: expected a word and its numbers, .* found .rose"),
        (f"1 {'9' * 5000}\n", r"txt:1: .* 1 numbers, .* set --dim 1\."),
        ("1000 300\nrose 1\n", r"txt:1: .* 300 numbers, .* set --dim 300\."),
        ("rose 1 2 3 4\nthe 1 2 3\n", r"txt:2: .* and 4 numbers, .* found 3\."),
        ("rose 1 2 3 4\nthe 1 2 3 4 5\n", r"txt:2: expected .* found 5\."),
        ("rose 1 2 3 4\n\n", r"txt:2: expected a word and 4 numbers"),
        ("the 1 2 3 4\nrose 1 2 x 4\n", r"txt:2: expected finite numbers"),
        ("the 1 2 3 4\nrose 1 2 nan 4\n", r"txt:2: expected finite numbers"),
        ("the 1 2 3 4\nrose 1 -inf 2 4\n", r"txt:2: expected finite numbers"),
        ("the 1 2 3 4\nrose 1 1e300 2 4\n", r"txt:2: expected finite numbers"),
        ("dahlia 1 2 3 4\n", r"none of the \d+ pieces .* different language"),
        ("9 4\nrose 1 2 3 4\n", r"has 1 words, and 9 according .* complete"),
        ("\0\0\0\0\xff\xfe\0\0", r"UTF-16 or UTF-32, or not text"),
    ],
)
def test_what_is_broken_is_named_with_its_line(
    tmp_path, tokenizer, content, message
):
    path = tmp_path / "glove.txt"
    path.write_text(content, "latin-1")
    with pytest.raises(DataError, match=message):
        word_vectors(path, tokenizer, initial_of(tokenizer))


def test_vectors_of_zeros_are_zeros(tmp_path, tokenizer):
    path = tmp_path / "glove.txt"
    path.write_text("rose 0 0 0 0\n")
    rows, found, before = read(path, tokenizer)
    assert found == 1 and not rows["rose"].any()
    length = np.linalg.norm(before["the"])
    np.testing.assert_allclose(np.linalg.norm(rows["the"]), length, rtol=1e-5)


def test_a_missing_file_is_one_message(tmp_path, tokenizer):
    with pytest.raises(DataError, match="There is no file"):
        word_vectors(tmp_path / "none", tokenizer, initial_of(tokenizer))
