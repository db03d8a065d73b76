"""Embeddings that start from the vectors of words in a file."""

import os
import re

import numpy as np
import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.tables import beginning
from kseq.data.files.text_files import read_lines
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import escaped_line, progress

_BLOCK = 1000  # words, between two reports of progress
_LARGEST = 1e9  # their squares are added


def word_vectors(
    path: str | os.PathLike, tokenizer: Tokenizer, initial: np.ndarray
) -> tuple[np.ndarray, int]:
    r"""Replaces rows of an embedding by the vectors of words in a file.

    A piece that begins a word, or is punctuation alone, gets the vector of the
    word that it spells, in the same or in lower case. The vectors are scaled to
    a root mean square of D ** -0.5, that of the rows that they replace. All
    other rows are multiplied by the rotation R that fits best where a piece has
    both, so that vectors of `piece_vectors` and of the file agree:

        R = argmin |initial[found] R - vectors|,  R R' = 1

    Args:
        path: of a text file, plain or compressed. A line is a word and its
            numbers, separated by spaces, as of GloVe; in the first line may
            be their numbers, as of fastText and word2vec. Only vectors of
            pieces are kept in memory.
        tokenizer: `Tokenizer`, with V pieces.
        initial: (V, D) float32, the rows of pieces that are not in the file.

    Returns:
        (V, D) float32, and the number of pieces that were found.

    Raises:
        DataError: that names the line, where the file is broken, has vectors
            of another size, or has no word of the vocabulary.

    Example:
    >>> with open("a.vec", "w") as file:
    ...     print("2 3", "a 1 0 0", "rose 0 1 0", sep="\n", file=file)
    >>> tokenizer = Tokenizer.train(["a rose is a rose"] * 2, 9, "word")
    >>> vectors, found = word_vectors("a.vec", tokenizer, np.eye(7, 3))
    >>> vectors.shape, found
    ((7, 3), 2)

    Reference:
        Pennington et al. 2014, D14-1162; Bojanowski et al. 2017,
        arXiv:1607.04606. The rotation: Schönemann 1966.
    """
    words = _words(tokenizer)
    wanted = {form for word in words for form in (word, word.lower()) if word}
    known = _read(path, wanted, initial.shape[1])
    vectors = {
        row: known[form]
        for row, word in enumerate(words)
        for form in (word.lower(), word)  # the word itself is the last one
        if form in known
    }
    if not vectors:
        raise DataError(
            f"{path} has none of the {len(words)} pieces of the vocabulary. Is "
            "it for a different language?"
        )
    rows = [*vectors]
    found = np.array([*vectors.values()])
    found /= np.sqrt(found.shape[1] * np.mean(found**2)) or 1.0
    left, _, right = np.linalg.svd(initial[rows].T @ found)
    result = initial @ (left @ right)
    result[rows] = found
    return result.astype("float32"), len(rows)


def _words(tokenizer):
    """The word that each piece is, or "" where it is a part of one."""
    pieces = tokenizer.pieces(tf.range(tokenizer.vocab_size)).numpy()
    texts = [piece.decode() for piece in pieces]
    return [
        text.removeprefix("\u2581")
        if text.startswith("\u2581") or not any(map(str.isalnum, text))
        else ""
        for text in texts
    ]


def _read(path, wanted, dim):
    """dict, word -> (D,) float32; of two lines for a word, the first."""
    wanted = {word.encode(): word for word in wanted}
    found, promised, count = {}, None, 0
    with progress(f"Reading {escaped_line(path)}", unit="words") as advance:
        for line in read_lines(path):
            text = line.text.replace(b"\t", b" ").rstrip()
            if line.number == 1:
                size = text.count(b" ")
                if re.fullmatch(rb"\d{1,18} \d{1,18}", text):
                    promised, size = map(int, text.split())
                if not size:
                    raise DataError(
                        f"{line}: expected a word and its numbers, separated "
                        f"by spaces; found {beginning(text)}."
                    )
                if size != dim:
                    raise DataError(
                        f"{line}: the vectors have {size} numbers, those of "
                        f"the model {dim}: set --dim {size}."
                    )
                if promised is not None:
                    continue
            word = text[: text.find(b" ")]
            if text.count(b" ") != dim:
                _check_spaces_in_word(line, text, dim)
            elif word in wanted and wanted[word] not in found:
                found[wanted[word]] = _numbers(line, text)
            count += 1
            if count % _BLOCK == 0:
                advance(_BLOCK)
    if promised not in (None, count):
        raise DataError(
            f"{path} has {count} words, and {promised} according "
            "to its first line: it is not complete."
        )
    return found


def _check_spaces_in_word(line, text, dim):
    """Accepts ". . . 0.1 0.2", which is not a word of a vocabulary."""
    before = text.rsplit(b" ", dim)[0].split(b" ")
    if len(before) == 1 or _is_number(before[-1]):
        raise DataError(
            f"{line}: expected a word and {dim} numbers, separated by spaces; "
            f"found {text.count(b' ')}."
        )


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(line, text):
    try:
        vector = np.array([*map(float, text.split(b" ")[1:])])
    except ValueError:
        vector = np.array([np.nan])
    if not (abs(vector) <= _LARGEST).all():  # nan is not
        raise DataError(f"{line}: expected finite numbers after the word.")
    return vector.astype("float32")
