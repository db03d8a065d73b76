"""Text to ids and back, the same in training and in a served graph."""

import functools
import hashlib
import itertools
import os
import re
from collections.abc import Iterable

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END, UNK
from kseq.data.files.blank_text import BLANK, has_blank_line
from kseq.data.files.data_error import DataError
from kseq.data.text.tokenizer_training import (
    CONTROL_IDS,
    LINE_BREAK,
    LOWER_BLOCK,
    SPACE,
    TAKEN,
    report_unknown,
    train_tokenizer,
)
from kseq.data.text.word_encoder import WordEncoder
from kseq.files.regular_file import read_regular
from kseq.terminal import progress

NOT_IN_VOCABULARY = "<not in the vocabulary>"
_WORD = re.compile(r"\s*\S+")
_WITH_TENSORFLOW = 128  # texts together, of which one needs it
_NOT_PLAIN = f"\0\r{LOWER_BLOCK}{LINE_BREAK}"


class Tokenizer(tf.Module):
    """A SentencePiece tokenizer that runs inside the graph.

    Nothing is normalized: spaces of all kinds, composed and decomposed letters
    and emoji are restored. Only what belongs to the file rather than to the
    text is dropped: ASCII white space at both ends, the whole of a blank text,
    such as one of U+3000 alone, and carriage returns. A verbatim tokenizer
    keeps white space and line breaks, too. Invalid UTF-8 becomes U+FFFD, and so
    do the noncharacters U+FDD0 and U+FDD1. With "bpe" and "unigram" an unseen
    character is spelled in bytes; with "char" and "word" it is UNK.

    Args:
        model: bytes, a SentencePiece model whose ids of padding, unknown,
            start and end are 0, 1, 2 and 3. From a control piece
            `NOT_IN_VOCABULARY` on, pieces only divide a text: they are UNK.

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
        proto = _checked(model)
        pieces = len(proto.pieces)
        self.vocab_size = next(
            (
                number
                for number, each in enumerate(proto.pieces)
                if each.piece == NOT_IN_VOCABULARY and each.type == each.CONTROL
            ),
            pieces,
        )
        self._has_more = self.vocab_size < pieces
        self.is_verbatim = not proto.normalizer_spec.add_dummy_prefix
        # Of two segmentations with the same probability, the one in the graph
        # is not always that of the package.
        is_unigram = proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM
        self._needs_graph = self.is_verbatim or is_unigram or self._has_more
        # When a graph is loaded, operations with the same name share a
        # resource, whatever their models are: the name must identify the model.
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
                lines, a million drawn at random. A long line is read in parts.
            vocab_size: the most pieces, with the four control tokens and, for
                "bpe" and "unigram", the 256 bytes. A text that supports fewer
                has fewer. For "char", a warning says if characters are left
                out.
            model_type: "bpe", "unigram", "char" or "word".
            verbatim: whether white space at the ends of a text and line
                breaks in it are kept, for running text; not for "word". A
                line may then end with its line break.

        Raises:
            DataError: there is no text, or its characters need more pieces.
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
            model = train_tokenizer(lines, vocab_size, model_type, verbatim)
        return cls(model)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Tokenizer":
        """Reads a file with the bytes of a `model`."""
        try:
            return cls(read_regular(path))
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror}.") from None
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def report_unknown(self, lines: Iterable[str | bytes]):
        """Warns of characters of a text that a "char" tokenizer lacks."""
        report_unknown(self.model, lines)

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string -> (B, T) int32, ragged, without START and END."""
        return self._ids(self._sentencepiece(), text)

    def tokenize_within(self, text) -> tf.RaggedTensor:
        """The same for texts that follow others without a space."""
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.model)
        proto.normalizer_spec.add_dummy_prefix = False
        within = tensorflow_text.SentencepieceTokenizer(
            proto.SerializeToString(), name=f"{self._name_in_graph}_within"
        )
        return self._ids(within, text)

    def _ids(self, sentencepiece, text):
        ids = sentencepiece.tokenize(self._plain(text))
        if self._has_more:
            known = ids.flat_values < self.vocab_size
            flat = tf.where(known, ids.flat_values, UNK)
            ids = ids.with_flat_values(flat)
        return ids

    def _plain(self, text):
        """What SentencePiece reads of texts, (B,) string."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        # The line reader of tf.data drops each carriage return, too.
        text = tf.strings.regex_replace(text, "\r", "")
        text = tf.strings.regex_replace(text, TAKEN, "\ufffd")
        if not self.is_verbatim:
            text = tf.strings.regex_replace(text, BLANK, "")
            text = tf.strings.strip(text)
        return text

    def words_of_pieces(self, texts: list[bytes]) -> list[list[int]]:
        """In which word of its text, counted from 0, each piece begins.

        Words are between white space, which belongs to the word after it.

        Args:
            texts: B of them.

        Returns:
            A list for each text, as long as its ids without END.
        """
        plain = self._plain(tf.constant(texts, tf.string))
        _, starts, _ = self._sentencepiece().tokenize_with_offsets(plain)
        found = []
        for text, begin in zip(plain.numpy(), starts.to_list(), strict=True):
            words = _WORD.findall(text.decode())
            ends = np.cumsum([len(word.encode()) for word in words])
            found.append(np.searchsorted(ends, begin, side="right").tolist())
        return found

    def tokenize_with_end(
        self, text, max_length: int | None = None
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Appends END: the ids of a source, or the labels of a target.

        Args:
            text: (B,) string.
            max_length: maximum number of ids of a row, END included; the rest
                of the text is cut.

        Returns:
            (B, T) int32, ragged, each row with END last, and whether it was
            cut, (B,) bool.
        """
        whole = self.tokenize(text)
        ids = whole if max_length is None else whole[:, : max_length - 1]
        ends = tf.fill([ids.nrows(), 1], END)
        truncated = whole.row_lengths() > ids.row_lengths()
        return tf.concat([ids, ends], axis=1), truncated

    def encode_with_end(
        self, texts: list[bytes]
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `tokenize_with_end` gives, without TensorFlow for most texts.

        On one core this is several times faster, but for "unigram" and
        verbatim tokenizers, whose texts go through the graph.

        Args:
            texts: B of them, without line breaks.

        Returns:
            The ids of all texts, (N,) int32, and their number for each text,
            (B,) int32.
        """
        text = None if self._needs_graph else _plain_text(texts)
        if text is None:
            if self._needs_graph or len(texts) <= _WITH_TENSORFLOW:
                ids, _ = self.tokenize_with_end(tf.constant(texts, tf.string))
                return ids.flat_values.numpy(), ids.row_lengths().numpy()
            # Perhaps only one of them is not plain.
            middle = len(texts) // 2
            halves = texts[:middle], texts[middle:]
            (ids, lengths), others = map(self.encode_with_end, halves)
            return np.append(ids, others[0]), np.append(lengths, others[1])
        if self._words is not None:
            return self._words.encode_with_end(text)
        rows = self._processor.encode(
            text.split("\n"), add_eos=True, num_threads=1
        )
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        ids = itertools.chain.from_iterable(rows)
        return np.fromiter(ids, np.int32, int(lengths.sum())), lengths

    @functools.cached_property
    def _processor(self):
        return sentencepiece.SentencePieceProcessor(model_proto=self.model)

    @functools.cached_property
    def _words(self):
        possible = WordEncoder.is_possible(self.model)
        return WordEncoder(self.model) if possible else None

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

    def shares_vocabulary(self, other: "Tokenizer") -> bool:
        """Whether each id is the same piece for both."""
        return self._pieces() == other._pieces()

    def _pieces(self):
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.model)
        return [each.piece for each in proto.pieces[: self.vocab_size]]

    def surfaces(self) -> list[bytes]:
        """The text that each id adds; nothing for control tokens."""
        ids = range(self.vocab_size)
        return [_surface(self._processor, token_id) for token_id in ids]

    def _sentencepiece(self):
        # Created for each use: `keras.utils.clear_session` deletes the resource
        # of one that is kept.
        return tensorflow_text.SentencepieceTokenizer(
            self.model, name=self._name_in_graph
        )


def _plain_text(texts) -> str | None:
    """Texts joined by line breaks, if SentencePiece can read them as they are.

    Otherwise None: if one is blank or not UTF-8, or has a character that
    `tokenize` replaces.
    """
    joined = b"\n".join([text.strip() for text in texts])
    try:
        text = joined.decode()
    except UnicodeDecodeError:
        return None
    # A regular expression of all of them takes a hundred times as long.
    is_plain = not any(character in text for character in _NOT_PLAIN)
    is_plain = is_plain and not has_blank_line(text)
    return text if is_plain and text.count("\n") == len(texts) - 1 else None


def _surface(processor, token_id) -> bytes:
    if processor.is_control(token_id) or processor.is_unknown(token_id):
        return b""
    piece = processor.id_to_piece(token_id)
    if processor.is_byte(token_id):  # <0x0A>
        return bytes([int(piece[1:-1], 16)])
    piece = piece.replace("\u2581", " ").replace(LINE_BREAK, "\n")
    return piece.replace(LOWER_BLOCK, "\u2581").encode()


def _checked(model):
    """The `ModelProto` of a model; DataError if TensorFlow cannot use it."""
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except (RuntimeError, UnicodeError):  # which may be that of the message
        raise DataError("Not a SentencePiece model.") from None
    ids = {name: getattr(processor, name)() for name in CONTROL_IDS}
    if ids != CONTROL_IDS:
        raise DataError(
            f"The control tokens must be {CONTROL_IDS}. Received: {ids}"
        )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for number, piece in enumerate(proto.pieces):
        # The trie of TensorFlow's copy of SentencePiece crashes with NUL.
        is_text = isinstance(piece.piece, str) and "\0" not in piece.piece
        if not is_text or _is_control_in_text(proto, piece):
            raise DataError(
                f"Not a SentencePiece model: piece {number}, "
                f"{piece.piece!r:.50}, cannot be part of a text."
            )
    return proto


def _is_control_in_text(proto, piece) -> bool:
    """Whether a control piece may be found in a text, which is an error."""
    kinds = proto.trainer_spec
    if piece.type != piece.CONTROL or kinds.model_type == kinds.UNIGRAM:
        return False
    if kinds.model_type == kinds.WORD:  # a word has a space
        return SPACE in piece.piece
    return len(piece.piece) == 1
