"""Text to ids and back, the same in training and in a served graph."""

import hashlib
import io
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import sentencepiece
import tensorflow as tf
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END, PAD, START, UNK
from kseq.data.data_error import DataError
from kseq.data.text_files import LONGEST_LINE
from kseq.progress import progress

_CONTROL_IDS = {"pad_id": PAD, "unk_id": UNK, "bos_id": START, "eos_id": END}
_SAMPLED_LINES = 1_000_000  # of a larger text, drawn to train the tokenizer

# SentencePiece writes a space as U+2581. So that this character of the text
# survives, it becomes a code point to which Unicode never gives a meaning.
_ENCODING_RULES = "2581\tFDD0\n"
_DECODING_RULES = "FDD0\t2581\n"
# A line break inside a verbatim text, which SentencePiece takes for a space.
_LINE_BREAK = "\ufdd1"
_ENCODED_BREAK = "A\tFDD1\n"
_DECODED_BREAK = "FDD1\tA\n"


class Tokenizer(tf.Module):
    """A SentencePiece tokenizer that runs inside the graph.

    Nothing is normalized: spaces of all kinds, composed and decomposed
    letters and emoji come back as they were. Only what belongs to the file
    and not to the text is left out: white space of ASCII at both ends, and
    carriage returns. A verbatim tokenizer keeps white space at the ends and
    line breaks, too. Invalid UTF-8 becomes U+FFFD. With "bpe" and "unigram"
    a character that was never seen is spelled in bytes; with "char" and
    "word" it is UNK.

    Args:
        model: bytes, a SentencePiece model whose ids of padding, unknown,
            start and end are 0, 1, 2 and 3.

    Raises:
        DataError: `model` is not such a model.

    Example:
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> tokenizer = Tokenizer.train(lines, 270, "bpe")
    >>> ids = tokenizer.tokenize(["a rose is"])
    >>> tokenizer.detokenize(ids.to_tensor()).numpy().tolist()
    [b'a rose is']

    Reference:
        Kudo and Richardson 2018, arXiv:1808.06226.
    """

    def __init__(self, model: bytes):
        super().__init__(name="tokenizer")
        self.model = model
        self.vocab_size = _checked_vocab_size(model)
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
        self.is_verbatim = not proto.normalizer_spec.add_dummy_prefix
        # When a graph is loaded, operations of one name share one resource,
        # whatever their models are: the name must say which it is.
        self._name_in_graph = f"model_{hashlib.sha256(model).hexdigest()[:16]}"

    @classmethod
    def train(
        cls,
        lines: Iterable[str | bytes],
        vocab_size: int,
        model_type: str = "bpe",
        verbatim: bool = False,
    ) -> "Tokenizer":
        """Learns a vocabulary; the same lines give the same one.

        Args:
            lines: read once, in constant memory; of more than a million
                lines, a million drawn at random.
            vocab_size: number of pieces, with the four control tokens and, for
                "bpe" and "unigram", the 256 bytes. For "char" and "word" an
                upper limit.
            model_type: "bpe", "unigram", "char" or "word".
            verbatim: whether white space at the ends of a text and line
                breaks in it are kept, for running text; not for "word". A
                line may then end with its line break.

        Raises:
            DataError: the text supports fewer pieces, or needs more.
        """
        if model_type not in ("bpe", "unigram", "char", "word"):
            raise ValueError(
                'model_type must be "bpe", "unigram", "char" or "word". '
                f"Received: model_type={model_type}"
            )
        if verbatim and model_type == "word":
            raise ValueError(
                "A tokenizer of words keeps no white space. "
                "Received: verbatim=True"
            )
        with progress("Training the tokenizer"):
            return cls(_train(lines, vocab_size, model_type, verbatim))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Tokenizer":
        """Reads a file with the bytes of a `model`."""
        try:
            return cls(Path(path).read_bytes())
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror}.") from None
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string -> (B, T) int32, ragged, without START and END."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        # The line reader of tf.data leaves out each carriage return, too.
        text = tf.strings.regex_replace(text, "\r", "")
        if not self.is_verbatim:
            text = tf.strings.strip(text)
        return self._sentencepiece().tokenize(text)

    def tokenize_with_end(
        self, text, max_length: int | None = None
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Appends END: the ids of a source, or the labels of a target.

        Args:
            text: (B,) string.
            max_length: most ids of a row, END included; the rest of the text
                is cut.

        Returns:
            (B, T) int32, ragged, each row with END last, and whether it was
            cut, (B,) bool.
        """
        whole = self.tokenize(text)
        ids = whole if max_length is None else whole[:, : max_length - 1]
        ends = tf.fill([ids.nrows(), 1], END)
        truncated = whole.row_lengths() > ids.row_lengths()
        return tf.concat([ids, ends], axis=1), truncated

    def detokenize(self, ids) -> tf.Tensor:
        """(B, T) int -> (B,) string, of what precedes the first END."""
        ids = tf.cast(ids, tf.int32)
        ended = tf.cumsum(tf.cast(ids == END, tf.int32), axis=1) > 0
        lengths = tf.math.count_nonzero(~ended, axis=1)
        return self._sentencepiece().detokenize(
            tf.RaggedTensor.from_tensor(ids, lengths)
        )

    def pieces(self, ids) -> tf.Tensor:
        """The piece of each id; int -> string, same shape."""
        return self._sentencepiece().id_to_string(tf.cast(ids, tf.int32))

    def surfaces(self) -> list[bytes]:
        """What each id adds to a text; nothing for control tokens."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        return [_surface(processor, i) for i in range(self.vocab_size)]

    def _sentencepiece(self):
        # Made for each use: `keras.utils.clear_session` deletes the resource of
        # one that is kept.
        return tensorflow_text.SentencepieceTokenizer(
            self.model, name=self._name_in_graph
        )


def _train(lines, vocab_size, model_type, verbatim) -> bytes:
    has_bytes = model_type in ("bpe", "unigram")
    smallest = 5 + 256 * has_bytes
    if vocab_size < smallest:
        raise DataError(
            f'A vocabulary of type "{model_type}" has at least {smallest} '
            f"pieces. Received: {vocab_size=}"
        )
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
                hard_vocab_limit=has_bytes,
                character_coverage=0.9995 if has_bytes else 1.0,
                byte_fallback=has_bytes,
                # Numbers that were never seen are made of digits that were.
                split_digits=True,
                normalization_rule_tsv=str(encoding_rules),
                denormalization_rule_tsv=str(decoding_rules),
                # To words, two spaces are no more than one.
                remove_extra_whitespaces=model_type == "word",
                # Not given otherwise: models are the same, to the byte, as
                # those of earlier versions.
                **({"add_dummy_prefix": False} if verbatim else {}),
                input_sentence_size=_SAMPLED_LINES,
                shuffle_input_sentence=True,
                max_sentence_length=LONGEST_LINE,
                minloglevel=2,
                **_CONTROL_IDS,
            )
        except RuntimeError as error:
            raise text.error or _explained(error, text, vocab_size) from None
    return _without_paths(model.getvalue())


class _Text:
    """Lines as SentencePiece wants them, and whether there were any.

    An error while they are read, which may be Ctrl-C, is kept in `error`:
    SentencePiece raises a RuntimeError instead.
    """

    def __init__(self, lines, verbatim):
        self.lines = lines
        self.verbatim = verbatim
        self.is_empty = True
        self.error = None

    def __iter__(self) -> Iterator[str]:
        try:
            yield from self._usable_lines()
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def _usable_lines(self) -> Iterator[str]:
        for line in self.lines:
            if isinstance(line, str):
                line = line.encode(errors="replace")
            line = line.replace(b"\r", b"")
            line = line if self.verbatim else line.strip()
            if 0 < len(line) <= LONGEST_LINE:
                self.is_empty = False
                text = line.decode(errors="replace")
                # SentencePiece leaves out a line break at the end.
                yield text.replace("\n", _LINE_BREAK)


def _explained(error, text, vocab_size) -> Exception:
    if text.is_empty:
        return DataError("There is no text to train a tokenizer on.")
    if most := re.search(r"value <= (\d+)", str(error)):
        return DataError(
            f"The text supports at most {most[1]} pieces; lower vocab_size. "
            f"Received: {vocab_size=}"
        )
    if least := re.search(r"\d+ vs (\d+)", str(error)):
        return DataError(
            f"The characters of the text need at least {least[1]} pieces; "
            f"raise vocab_size. Received: {vocab_size=}"
        )
    return error


def _surface(processor, token_id) -> bytes:
    if processor.is_control(token_id) or processor.is_unknown(token_id):
        return b""
    piece = processor.id_to_piece(token_id)
    if processor.is_byte(token_id):  # <0x0A>
        return bytes([int(piece[1:-1], 16)])
    piece = piece.replace("\u2581", " ").replace(_LINE_BREAK, "\n")
    return piece.replace("\ufdd0", "\u2581").encode()


def _without_paths(model) -> bytes:
    """The model without the names of its temporary files."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    proto.denormalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString(deterministic=True)


def _checked_vocab_size(model) -> int:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        raise DataError("Not a SentencePiece model.") from None
    ids = {name: getattr(processor, name)() for name in _CONTROL_IDS}
    if ids != _CONTROL_IDS:
        raise DataError(
            f"The control tokens must be {_CONTROL_IDS}. Received: {ids}"
        )
    return processor.vocab_size()
