import numpy as np
import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from kseq.data import DataError, Tokenizer
from kseq.data.text.piece_halves import piece_halves
from tests.data.conftest import SENTENCES


def halves_of(tokenizer):
    return piece_halves(tokenizer.model, tokenizer.vocab_size)


def tiny_model(kind, scores):
    """A model of these pieces alone."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.trainer_spec.model_type = getattr(proto.trainer_spec, kind)
    for piece, score in scores.items():
        proto.pieces.add(piece=piece, score=score)
    return proto.SerializeToString()


def names(scores, halves):
    pieces = [*scores]
    return {
        pieces[number]: (pieces[left], pieces[right])
        for number, (left, right) in enumerate(halves)
        if left
    }


def test_bpe_is_split_where_it_was_merged_last():
    """Of "abc" and "bc", "bc" is merged first; "abcd" is "a" and "bcd"."""
    ranks = ["<pad>", "a", "b", "c", "d", "bc", "ab", "bcd", "abc", "abcd"]
    scores = {piece: -float(rank) for rank, piece in enumerate(ranks)}
    scores["xy"] = -20.0  # no merge makes it
    halves = piece_halves(tiny_model("BPE", scores), len(scores))
    assert names(scores, halves) == {
        "bc": ("b", "c"),
        "ab": ("a", "b"),
        "bcd": ("bc", "d"),
        "abc": ("a", "bc"),
        "abcd": ("a", "bcd"),
    }


def test_unigram_is_split_into_the_most_probable_two():
    scores = {"<pad>": 0.0, "a": -4.0, "b": -4.0, "c": -5.0, "ab": -6.0}
    scores |= {"bc": -3.0, "abc": -6.5, "xa": -7.0}
    halves = piece_halves(tiny_model("UNIGRAM", scores), len(scores))
    assert names(scores, halves) == {
        "ab": ("a", "b"),
        "bc": ("b", "c"),
        "abc": ("a", "bc"),
    }


def test_pieces_beyond_the_vocabulary_are_not_used():
    scores = {"<pad>": 0.0, "a": -4.0, "b": -4.0, "ab": -5.0, "c": -4.0}
    scores["bc"] = scores["abc"] = -4.0
    halves = piece_halves(tiny_model("UNIGRAM", scores), 4)
    assert halves.tolist() == [[0, 0]] * 3 + [[1, 2]]


def test_sentencepiece_undoes_the_same_merges(tokenizer):
    """It writes a piece that is marked as unused as its two halves."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    proto.normalizer_spec.add_dummy_prefix = False
    halves = halves_of(tokenizer)
    split = np.flatnonzero(halves[:, 0])
    assert len(split) > 10
    for number in split:
        piece = proto.pieces[number]
        piece.type = piece.UNUSED
        processor = sentencepiece.SentencePieceProcessor(
            model_proto=proto.SerializeToString()
        )
        piece.type = piece.NORMAL
        text = piece.piece.replace("\u2581", " ")
        assert processor.encode(text) == halves[number].tolist()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_halves_are_the_text_of_their_piece(kind):
    tokenizer = Tokenizer.train(SENTENCES, 310, kind)
    surfaces = tokenizer.surfaces()
    halves = halves_of(tokenizer)
    for whole, (left, right) in enumerate(halves):
        if left:
            assert surfaces[left] + surfaces[right] == surfaces[whole]
    assert not halves[: 4 + 256].any()  # control tokens and bytes
    assert (halves[:, 0] > 0).sum() > 3


@pytest.mark.parametrize("kind", ["char", "word"])
def test_characters_and_words_are_refused(kind):
    tokenizer = Tokenizer.train(SENTENCES, 100, kind)
    with pytest.raises(DataError, match=f"bpe and unigram. Received: {kind}"):
        halves_of(tokenizer)
