"""Trains the SentencePiece model of a tokenizer."""

import io
import logging
import math
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END, PAD, START, UNK
from kseq.data.files.blank_text import is_blank
from kseq.data.files.data_error import DataError
from kseq.data.files.text_files import LONGEST_LINE
from kseq.user_error import ArgumentError, check_integers

CONTROL_IDS = {"pad_id": PAD, "unk_id": UNK, "bos_id": START, "eos_id": END}
_SAMPLED_LINES = 1_000_000  # of a larger text, drawn to train the tokenizer

# SentencePiece writes a space as U+2581. To preserve this character in a text,
# it is replaced by a noncharacter of Unicode.
LOWER_BLOCK = "\ufdd0"
_ENCODING_RULES = "2581\tFDD0\n"
_DECODING_RULES = "FDD0\t2581\n"
# A line break inside a verbatim text, which SentencePiece would make a space.
LINE_BREAK = "\ufdd1"
_ENCODED_BREAK = "A\tFDD1\n"
_DECODED_BREAK = "FDD1\tA\n"
TAKEN = f"[{LOWER_BLOCK}{LINE_BREAK}]"  # become U+FFFD in a text

SPACE = "\u2581"
# SentencePiece skips a line with one of these.
_SKIPPED = re.compile("[\0\u2585]")
_LONGEST_PART = LONGEST_LINE // 4  # characters, each of at most four bytes

_COUNTED = 2**20  # characters that are counted together

_log = logging.getLogger(__name__)


def check_vocab_size(vocab_size, model_type):
    """UserError unless a vocabulary of this type can be so small."""
    check_integers(vocab_size=vocab_size)
    smallest = 5 + 256 * _has_bytes(model_type)
    if vocab_size < smallest:
        raise DataError(
            f'A vocabulary of type "{model_type}" has at least {smallest} '
            f"pieces. Received: {vocab_size=}"
        )


def _has_bytes(model_type):
    return model_type in ("bpe", "unigram")


def train_tokenizer(lines, vocab_size, model_type, verbatim) -> bytes:
    """A SentencePiece model; see `Tokenizer.train`."""
    check_vocab_size(vocab_size, model_type)
    has_bytes = _has_bytes(model_type)
    text = _Text(lines, verbatim)
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        encoding_rules = Path(folder, "encoding.tsv")
        encoding_rules.write_text(_ENCODING_RULES + _ENCODED_BREAK * verbatim)
        decoding_rules = Path(folder, "decoding.tsv")
        decoding_rules.write_text(_DECODING_RULES + _DECODED_BREAK * verbatim)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(text),
                model_writer=model,
                model_type=model_type,
                vocab_size=vocab_size,
                hard_vocab_limit=False,
                character_coverage=0.9995 if has_bytes else 1.0,
                byte_fallback=_has_bytes(model_type),
                # Unseen numbers are spelled with digits that were seen.
                split_digits=True,
                normalization_rule_tsv=str(encoding_rules),
                denormalization_rule_tsv=str(decoding_rules),
                # Between words, two spaces equal one.
                remove_extra_whitespaces=model_type == "word",
                # Omitted otherwise, which keeps models equal to those of
                # earlier versions, to the byte.
                **({"add_dummy_prefix": False} if verbatim else {}),
                input_sentence_size=_SAMPLED_LINES,
                shuffle_input_sentence=True,
                max_sentence_length=LONGEST_LINE,
                minloglevel=2,
                **CONTROL_IDS,
            )
        except RuntimeError as error:
            raise text.error or _explained(error, text, vocab_size) from None
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    # The names of the temporary files.
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    proto.denormalizer_spec.ClearField("normalization_rule_tsv")
    if has_bytes:
        # As if the size had been known: models that earlier versions could
        # make are the same, to the byte.
        proto.trainer_spec.hard_vocab_limit = True
        if len(proto.pieces) < vocab_size:
            _log.info(
                f"The text supports {len(proto.pieces):,} pieces: the "
                f"vocabulary has fewer than {vocab_size:,}."
            )
    if model_type == "char":
        _add_lost_characters(proto, text.characters(), vocab_size)
    if model_type != "word":
        _report_characters(proto, text, vocab_size, has_bytes)
    return proto.SerializeToString(deterministic=True)


def report_unknown(model: bytes, lines):
    """Warns of the characters that a vocabulary of characters does not have.

    With a model of another type, no line is read.
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    if proto.trainer_spec.model_type != proto.trainer_spec.CHAR:
        return
    text = _Text(lines, not proto.normalizer_spec.add_dummy_prefix)
    for _ in text:
        pass
    if found := _unknown(proto, text.characters()):
        _log.warning(
            f"{found} are not in the tokenizer that is kept: they are unknown, "
            "and cannot be read or written. A new tokenizer has them."
        )


def _no_lines(received):
    return ArgumentError(
        "lines must be an iterable of str or bytes, such as a list or an open "
        f"file. Received: {received!r:.60}"
    )


class _Text:
    """Lines as SentencePiece expects them, and whether there were any.

    A line may have any length: it is passed in parts, which end at spaces. An
    error while lines are read, which may be Ctrl-C, is kept in `error`:
    SentencePiece raises a RuntimeError instead.
    """

    def __init__(self, lines, verbatim):
        self.lines = lines
        self.verbatim = verbatim
        self.is_empty = True
        self.error = None
        self._characters = np.zeros(sys.maxunicode + 1, np.int64)
        self._uncounted, self._size = [], 0

    def __iter__(self) -> Iterator[str]:
        try:
            yield from self._usable_parts()
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def _usable_parts(self) -> Iterator[str]:
        if isinstance(self.lines, str | bytes):  # each character a line
            raise _no_lines(self.lines)
        for line in self.lines:
            if isinstance(line, str):
                line = line.encode(errors="replace")
            if not isinstance(line, bytes):
                raise _no_lines(line)
            line = line.replace(b"\r", b"")
            line = line if self.verbatim else line.strip()
            if not line or (not self.verbatim and is_blank(line)):
                continue
            self.is_empty = False
            text = re.sub(TAKEN, "\ufffd", line.decode(errors="replace"))
            # SentencePiece leaves out a line break at the end.
            text = text.replace("\n", LINE_BREAK)
            self._count(text)
            for part in _SKIPPED.split(text):
                yield from parts_of(part, _LONGEST_PART)

    def _count(self, text):
        # SentencePiece puts a space before a text that is not verbatim.
        self._uncounted.append(text if self.verbatim else " " + text)
        self._size += len(text)
        if self._size > _COUNTED:
            self._count_all()

    def _count_all(self):
        texts = "".join(self._uncounted).encode("utf-32-le")
        counts = np.bincount(np.frombuffer(texts, np.uint32))
        self._characters[: len(counts)] += counts
        self._uncounted, self._size = [], 0

    def characters(self) -> dict[str, int]:
        """The count of each character in the text, NUL excluded."""
        self._count_all()
        codes = np.flatnonzero(self._characters[1:]) + 1
        named = {" ": SPACE, SPACE: LOWER_BLOCK}
        counts = {chr(code): int(self._characters[code]) for code in codes}
        return {named.get(key, key): counts[key] for key in counts}

    def nulls(self) -> int:
        """The number of NUL characters in the text."""
        return int(self._characters[0])


def parts_of(text: str, most: int) -> Iterator[str]:
    """Cuts a text into parts of at most `most` characters.

    A part ends before a space, where every piece of a tokenizer ends, or
    anywhere in a text without spaces.

    >>> list(parts_of("a rose is", 7))
    ['a rose', ' is']
    """
    start = 0
    while len(text) - start > most:
        end = start + most
        space = text.rfind(" ", start + 1, end + 1)
        end = space if space > 0 else end
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _explained(error, text, vocab_size) -> Exception:
    if text.is_empty:
        return DataError("There is no text to train a tokenizer on.")
    if least := re.search(r"\d+ vs (\d+)", str(error)):
        return DataError(
            f"The characters of the text need at least {least[1]} pieces; "
            f"raise vocab_size. Received: {vocab_size=}"
        )
    return error


def _add_lost_characters(proto, counts, vocab_size):
    """Adds characters that SentencePiece does not count to the vocabulary.

    These are some control characters, those of words such as `</s>`, and those
    of lines that were not sampled.
    """
    first = len(CONTROL_IDS)
    kept = {piece.piece for piece in proto.pieces[first:]}
    lost = counts.keys() - kept
    is_full = len(proto.pieces) == vocab_size
    rarest = min((counts.get(piece, 0) for piece in kept), default=0)
    if not lost or (is_full and max(counts[p] for p in lost) <= rarest):
        return
    del proto.pieces[first:]
    total = sum(counts.values())
    frequent = sorted(counts, key=lambda piece: (-counts[piece], piece))
    for piece in frequent[: vocab_size - first]:
        proto.pieces.add(piece=piece, score=math.log(counts[piece] / total))


def _report_characters(proto, text, vocab_size, has_bytes):
    """Logs how many characters of the text are not pieces."""
    if (nulls := text.nulls()) and not has_bytes:
        _log.warning(f"{nulls:,} NUL characters in the text are unknown.")
    counts = text.characters()
    found = _unknown(proto, counts)
    if found and has_bytes:
        _log.info(f"{found} are rare: they are spelled in bytes.")
    elif found:
        _log.warning(
            f"{found} do not fit into vocab_size={vocab_size}: they are "
            "unknown, and cannot be read or written. Set vocab_size to "
            f"{len(counts) + len(CONTROL_IDS)} to keep all."
        )


def _unknown(proto, counts) -> str:
    """How many characters are not pieces, in words; "" if all are."""
    lost = counts.keys() - {piece.piece for piece in proto.pieces}
    if not lost:
        return ""
    share = sum(counts[piece] for piece in lost) / sum(counts.values())
    return (
        f"{len(lost):,} of {len(counts):,} different characters "
        f"({share:.2%} of the text)"
    )
