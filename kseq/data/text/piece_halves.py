"""The two pieces of which each piece of a tokenizer is made."""

import itertools

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from kseq.data.files.data_error import DataError


def piece_halves(model: bytes, vocab_size: int) -> np.ndarray:
    """The two pieces of which each piece of a tokenizer is made.

    With BPE they are those of its last merge. With unigram they are the two
    with the highest probability.

    Args:
        model: bytes, a SentencePiece model of type bpe or unigram.
        vocab_size: int, V; pieces after these are not used.

    Returns:
        (V, 2) int32, the ids of both; 0 for a piece that is not made of others,
        such as a letter, a byte or a control token.

    Raises:
        DataError: the pieces are characters or words.

    Example:
    >>> from kseq.data import Tokenizer
    >>> tokenizer = Tokenizer.train(["a rose is a rose"], 269, "bpe")
    >>> pieces = tokenizer.pieces(range(tokenizer.vocab_size)).numpy()
    >>> halves = piece_halves(tokenizer.model, tokenizer.vocab_size)
    >>> for piece in range(260, 262):
    ...     print(*(text.decode() for text in pieces[[piece, *halves[piece]]]))
    os o s
    ▁a ▁ a
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    kind = proto.trainer_spec.model_type
    if kind not in (proto.trainer_spec.BPE, proto.trainer_spec.UNIGRAM):
        name = proto.trainer_spec.ModelType.Name(kind).lower()
        raise DataError(
            "--subword-dropout splits pieces of types bpe and unigram. "
            f"Received: {name}"
        )
    scores, ids = {}, {}
    for number, each in enumerate(proto.pieces[:vocab_size]):
        if each.type == each.NORMAL:
            scores[each.piece], ids[each.piece] = each.score, number
    find = _last_merge if kind == proto.trainer_spec.BPE else _most_probable
    halves = np.zeros((vocab_size, 2), np.int32)
    for piece, number in ids.items():
        if found := find(piece, scores):
            halves[number] = [ids[half] for half in found]
    return halves


def _last_merge(piece, scores):
    """What is left before the last merge; None if merges do not make it."""
    parts = list(piece)
    while len(parts) > 2:
        merged = [scores.get(a + b) for a, b in itertools.pairwise(parts)]
        possible = [score for score in merged if score is not None]
        if not possible:
            return None
        first = merged.index(max(possible))
        parts[first : first + 2] = [parts[first] + parts[first + 1]]
    is_made = len(parts) == 2 and all(part in scores for part in parts)
    return parts if is_made else None


def _most_probable(piece, scores):
    """The two pieces with the highest probability; None if there are none."""
    splits = [(piece[:end], piece[end:]) for end in range(1, len(piece))]
    splits = [(a, b) for a, b in splits if a in scores and b in scores]
    return max(splits, key=lambda s: scores[s[0]] + scores[s[1]], default=None)
