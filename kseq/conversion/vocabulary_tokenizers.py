"""SentencePiece models whose ids are those of a vocabulary."""

import re

from sentencepiece import sentencepiece_model_pb2

from kseq.data import Tokenizer
from kseq.data.text.tokenizer import NOT_IN_VOCABULARY
from kseq.data.text.tokenizer_training import CONTROL_IDS
from kseq.files.regular_file import read_regular
from kseq.user_error import UserError

LANGUAGE = re.compile(">>.+<<")
CONTROL = ("<pad>", "<unk>", "<s>", "</s>")  # in the order of kseq's ids


def read_file(path):
    """The bytes of a file; UserError if it cannot be read."""
    try:
        return read_regular(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def vocabulary_tokenizers(paths, pieces):
    """The tokenizers of source and target, which may be one.

    Args:
        paths: two `pathlib.Path`, of SentencePiece models.
        pieces: for each of them list of str, `CONTROL` and the other pieces of
            its vocabulary.

    Returns:
        A list of two `Tokenizer`.

    Raises:
        UserError: if a file is no SentencePiece model, or does not fit its
            vocabulary.
    """
    both = [_tokenizer(*each) for each in zip(paths, pieces, strict=True)]
    return both if both[0].model != both[1].model else both[:1] * 2


def _tokenizer(path, pieces):
    """A SentencePiece model with the ids of a vocabulary.

    Its segmentation stays as it is: pieces that are not in the vocabulary
    follow it, and become UNK.
    """
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    content = read_file(path)
    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(content)
    except Exception:  # DecodeError is a class of each implementation
        raise UserError(f"{path} is not a SentencePiece model.") from None
    control = (kinds.CONTROL, kinds.UNKNOWN)
    own = {
        each.piece: each for each in proto.pieces if each.type not in control
    }
    if not own:
        raise UserError(f"{path} is not a SentencePiece model.")
    _check_vocabulary(path, own.values(), pieces)
    del proto.pieces[:]
    for piece in CONTROL:
        kind = kinds.UNKNOWN if piece == "<unk>" else kinds.CONTROL
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    seen = {*CONTROL, ""}
    for number, piece in enumerate(pieces[4:], 4):
        if LANGUAGE.fullmatch(piece):
            # It stands before the text, where SentencePiece adds a space.
            piece, kind, score = f"\u2581{piece}", kinds.USER_DEFINED, 0.0
        elif piece in own:
            kind, score = own[piece].type, own.pop(piece).score
        else:
            kind, score = kinds.UNUSED, 0.0
        if piece in seen:
            piece, kind = f"{piece}#{number}", kinds.UNUSED
        seen.add(piece)
        proto.pieces.add(piece=piece, score=score, type=kind)
    more = [each for piece, each in own.items() if piece not in seen]
    if more:
        name = NOT_IN_VOCABULARY
        proto.pieces.add(piece=name, score=0.0, type=kinds.CONTROL)
        proto.pieces.extend(more)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    for name, number in CONTROL_IDS.items():
        setattr(proto.trainer_spec, name, number)
    try:
        return Tokenizer(proto.SerializeToString())
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _check_vocabulary(path, own, pieces):
    """UserError for a vocabulary that is broken, or that of another model."""
    if re.search(r"[\0\ud800-\udfff]", "".join(pieces)):
        raise UserError(
            f"The vocabulary of {path} has a token with NUL or a surrogate."
        )
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    normal = {each.piece for each in own if each.type == kinds.NORMAL}
    known = normal.intersection(pieces)
    if 4 * len(known) < len(normal):  # a vocabulary may have fewer
        raise UserError(
            f"{path} does not fit its vocabulary, which has {len(known)} of "
            f"its {len(normal)} pieces: is it that of the other side?"
        )
