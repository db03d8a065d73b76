"""Pieces of a tokenizer as readable text."""

import re

import numpy as np

_END = "</s>"
_UNKNOWN = "<unk>"
_SPACE = "▁"
_LOWER_BLOCK = "\ufdd0"  # which is a U+2581 of the text
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def readable_attention(weights, source_tokens, target_tokens):
    """Attention with its tokens as text: real spaces, whole characters.

    A character that is spelled in bytes is one token: as a source token it has
    the sum of the weights of its bytes, as a target token the mean of their
    rows.

    Args:
        weights: (T, S) float.
        source_tokens: S pieces.
        target_tokens: T pieces.

    Returns:
        Weights (T', S') and lists of S' and T' texts.

    Example:
        >>> weights = np.array([[0.25, 0.5, 0.25]])
        >>> readable_attention(weights, ["▁a", "<0xC3>", "<0xBC>"], ["▁b"])
        (array([[0.25, 0.75]]), [' a', 'ü'], [' b'])
    """
    sources, columns = _characters(source_tokens)
    targets, rows = _characters(target_tokens)
    weights = np.asarray(weights)
    if len(sources) < len(source_tokens):
        weights = np.add.reduceat(weights, columns, axis=1)
    if len(targets) < len(target_tokens):
        sizes = np.diff([*rows, len(target_tokens)])
        weights = np.add.reduceat(weights, rows, axis=0) / sizes[:, None]
    return weights, sources, targets


def words_of(tokens):
    """The words of a text, and at which of its tokens each begins.

    Words are separated by white space; an unknown piece is one.

    Args:
        tokens: list of str, pieces without END.

    Returns:
        Lists of str and of int.

    Example:
        >>> words_of(["▁un", "likely", "▁", "<0xC3>", "<0xBC>", "ber"])
        (['unlikely', 'über'], [0, 2])
    """
    words, starts = [], []
    for text, start in zip(*_characters(tokens), strict=True):
        if text == _UNKNOWN:
            text = " ⁇ "  # as SentencePiece writes it
        begins = text[:1].isspace() or "".join(words[-1:])[-1:].isspace()
        if not words or (words[-1].strip() and begins):
            words.append(text)
            starts.append(start)
        else:
            words[-1] += text
    if words and not words[-1].strip():  # white space after the last one
        words.pop()
        starts.pop()
    return [word.strip() for word in words], starts


def is_end(token):
    """Whether a token is the end of a sentence, not text."""
    return token == _END


def turn_ends(tokens):
    """The positions after each END of a dialogue, and after the last token.

    Example:
        >>> turn_ends(["Hi", "</s>", "No", "way", "</s>"])
        [2, 5]
    """
    ends = [place for place, token in enumerate(tokens, 1) if is_end(token)]
    return ends if not tokens or is_end(tokens[-1]) else [*ends, len(tokens)]


def turn_sums(weights, tokens):
    """The weights of turns, (T, N), from those of their tokens, (T, S)."""
    if not tokens:
        return weights
    return np.add.reduceat(weights, [0, *turn_ends(tokens)[:-1]], axis=1)


def _characters(pieces):
    """Texts of pieces, and at which piece each begins."""
    texts, starts, spelled = [], [], b""
    for place, piece in enumerate(pieces):
        byte = _BYTE.fullmatch(piece)
        if byte is None:
            text = piece.replace(_SPACE, " ").replace(_LOWER_BLOCK, _SPACE)
            texts.append(text)
            starts.append(place)
            spelled = b""
            continue
        value = bytes.fromhex(byte[1])
        if _continues(spelled, value):
            spelled += value
            texts[-1] = spelled.decode("utf-8", "replace")
        else:
            spelled = value
            texts.append(value.decode("utf-8", "replace"))
            starts.append(place)
    return texts, starts


def _continues(spelled, value):
    """Whether a byte belongs to the character that bytes begin."""
    if not spelled or not b"\x80" <= value < b"\xc0":
        return False
    try:
        spelled.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
