"""Encodes texts word by word, each different word once."""

import itertools

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END
from kseq.data.text.tokenizer_training import LOWER_BLOCK, SPACE

_MOST_IDS = 2**20  # of the words that are kept, with them some 40 MB


class WordEncoder:
    """Encodes texts word by word, each different word once.

    Pieces of BPE that begin with a space and have none inside never join two
    words: the ids of a text are those of its words, one after the other. Words
    of a language repeat, so that most are looked up.

    Args:
        model: bytes, a SentencePiece model, see `is_possible`.
    """

    def __init__(self, model: bytes):
        self._processor = sentencepiece.SentencePieceProcessor(
            model_proto=model
        )
        self._clear()

    def _clear(self):
        # Between two spaces: a space before the space of the next word.
        space = self._processor.encode(" ")[1:]
        self._numbers = _Numbers({"\n": 0, "": 1})
        self._values = np.array([END, *space], np.int32)
        self._ends = np.array([1, 1 + len(space)])

    @staticmethod
    def is_possible(model: bytes) -> bool:
        """Whether a model encodes each word of a text as it would alone."""
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
        training, normalizer = proto.trainer_spec, proto.normalizer_spec
        rules = normalizer.precompiled_charsmap
        replacements = rules[4 + int.from_bytes(rules[:4], "little") :]
        return (
            training.model_type == training.BPE
            and training.byte_fallback  # several unknown pieces become one
            and not training.treat_whitespace_as_suffix
            and normalizer.add_dummy_prefix
            and normalizer.escape_whitespaces
            and not normalizer.remove_extra_whitespaces
            and replacements == f"{LOWER_BLOCK}\0".encode()
            and not any(SPACE in each.piece[1:] for each in proto.pieces)
        )

    def encode_with_end(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The ids of the lines of a text.

        Args:
            text: B lines without white space at their ends, none of them
                blank, joined by line breaks.

        Returns:
            The ids of all lines, each with END, (N,) int32, and their number
            for each line, (B,) int32.
        """
        words = f"{text}\n".replace("\n", " \n ").split(" ")[:-1]
        if len(self._values) > _MOST_IDS:
            self._clear()
        numbers = map(self._numbers.__getitem__, words)
        numbers = np.fromiter(numbers, np.int32, len(words))
        self._encode_new()
        ends, sizes = self._ends[numbers], self._sizes[numbers]
        ends_here = np.cumsum(sizes)
        places = np.repeat(ends - ends_here, sizes) + np.arange(ends_here[-1])
        lengths = np.diff(ends_here[numbers == 0], prepend=0)
        return self._values[places], lengths.astype(np.int32)

    def _encode_new(self):
        ids = self._processor.encode(self._numbers.new, num_threads=1)
        self._numbers.new = []
        sizes = np.fromiter(map(len, ids), np.int64, len(ids))
        ends = self._ends[-1] + np.cumsum(sizes)
        values = np.fromiter(itertools.chain.from_iterable(ids), np.int32)
        self._values = np.concatenate([self._values, values])
        self._ends = np.concatenate([self._ends, ends])
        self._sizes = np.diff(self._ends, prepend=0)


class _Numbers(dict):
    """Numbers words in the order in which they are looked up.

    Attributes:
        new: those that were not known, since this was emptied.
    """

    def __init__(self, known):
        super().__init__(known)
        self.new = []

    def __missing__(self, word):
        self.new.append(word)
        self[word] = number = len(self)
        return number
