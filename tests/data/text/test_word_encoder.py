import itertools
import random

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from kseq.data import Tokenizer
from kseq.data.text import word_encoder
from kseq.data.text.word_encoder import WordEncoder

LINES = ["a rose is a rose", "is a rosé, 一二  three"] * 20


@pytest.fixture(scope="module")
def model():
    return Tokenizer.train(LINES, 290, "bpe").model


def test_ids_are_those_of_whole_lines(model, monkeypatch):
    monkeypatch.setattr(word_encoder, "_MOST_IDS", 100)  # it is emptied often
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    encoder = WordEncoder(model)
    draw = random.Random()
    for _ in range(30):
        lines = [
            "x" + "".join(draw.choices("aros  \té一z.\u2581", k=20)) + "y"
            for _ in range(10)
        ]
        rows = processor.encode(lines, add_eos=True)
        ids, lengths = encoder.encode_with_end("\n".join(lines))
        assert ids.tolist() == list(itertools.chain.from_iterable(rows))
        assert lengths.tolist() == list(map(len, rows))


def changed(model, change):
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    change(proto)
    return proto.SerializeToString()


def with_other_rules(proto):
    proto.normalizer_spec.precompiled_charsmap += b"x\0"


def with_a_space_inside(proto):
    proto.pieces[-1].piece = "a\u2581b"


def with_unknown_pieces(proto):
    proto.trainer_spec.byte_fallback = False


@pytest.mark.parametrize(
    "change", [with_other_rules, with_a_space_inside, with_unknown_pieces]
)
def test_models_whose_words_are_not_independent(model, change):
    assert WordEncoder.is_possible(model)
    assert not WordEncoder.is_possible(changed(model, change))


@pytest.mark.parametrize("kind", ["unigram", "char", "word"])
def test_only_models_of_bpe(kind):
    size = 276 if kind == "unigram" else 100
    model = Tokenizer.train(LINES, size, kind).model
    assert not WordEncoder.is_possible(model)
