"""The ids of training pairs."""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from kseq.data.files.blank_text import BLANK
from kseq.data.files.dataset_options import (
    IN_PARALLEL,
    disable_autotuning,
    without_autograph,
)
from kseq.data.files.ragged_array import RaggedArray, dtype_of_ids
from kseq.data.files.shuffled_batches import count_lengths
from kseq.data.files.text_files import LONGEST_LINE
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import progress
from kseq.user_error import ArgumentError

_BLOCK = 1024  # pairs that are tokenized together
_LIMIT = 512  # tokens of a text that a model reads or writes, at the least


@dataclasses.dataclass(frozen=True)
class TokenizedPairs:
    """The ids of training pairs, in memory or in files.

    Args:
        source: the ids of the sources, each with END, or their numbers if they
            are features.
        target: the ids of the targets, each with END.
        counts: the number of pairs of each corpus, one after the other.
        preprocessor: made the ids of the sources.
        target_tokenizer: made the ids of the targets, if that is known.
        alignment: for each id of the targets 0, or 1 more than the position of
            the source id that it is aligned to; None if that is not known.
    """

    source: RaggedArray
    target: RaggedArray
    counts: tuple[int, ...]
    preprocessor: Any
    target_tokenizer: Tokenizer | None = None
    alignment: RaggedArray | None = None

    def longest_target(self, max_length: int) -> int:
        """Tokens of the longest target that is trained on, END included.

        As the maximum length of an answer, it truncates no answer of training.
        A low limit also lets a beam search stop earlier, because it knows
        sooner that no better answer is possible.

        Args:
            max_length: targets with more tokens, which training leaves out, do
                not count.

        Returns:
            At most `max_length`; 0 if no target counts.
        """
        return self._longest(-1, max_length)

    def source_limit(self, max_length: int) -> int:
        """How many tokens of a source to read: 512, or more to cut none."""
        return max(self._longest(0, max_length), _LIMIT)

    def answer_limit(self, max_length: int) -> int:
        """The same of answers, START and END included."""
        return max(self._longest(-1, max_length) + 1, _LIMIT)

    def _longest(self, side, max_length):
        lengths = self.all_lengths[0][:, side]
        return int(lengths.max(initial=0, where=lengths <= max_length))

    def length_ratio(self, max_length: int) -> float:
        """How much longer targets are than sources.

        Args:
            max_length: pairs with more tokens, which training leaves out, do
                not count.

        Returns:
            The smallest ratio for which 99.9 % of the targets have at most
            ratio * source + 5 tokens, END included, rounded up to 0.01; at
            least 0.01.
        """
        lengths, counts, longer = self.all_lengths
        is_short = longer <= max_length
        lengths, counts = lengths[is_short], counts[is_short]
        ratios = (lengths[:, -1] - 5) / lengths[:, 0]
        order = np.argsort(ratios)
        shares = np.cumsum(counts[order]) / max(counts.sum(), 1)
        if not len(order):
            return 0.01
        ratio = ratios[order[np.searchsorted(shares, 0.999)]]
        return max(math.ceil(100 * ratio) / 100, 0.01)

    @functools.cached_property
    def all_lengths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The different lengths (K, 2) of pairs, their counts, the longer side.

        See `count_lengths`.
        """
        sides = zip(
            self.source.blocks_of_lengths(),
            self.target.blocks_of_lengths(),
            strict=True,
        )
        blocks = (np.stack(lengths, axis=1) for lengths in sides)
        return count_lengths((block, block.max(axis=1)) for block in blocks)


def tokenize_pairs(
    corpora: tf.data.Dataset | list[tf.data.Dataset],
    preprocessor,
    target_tokenizer: Tokenizer,
    *,
    is_evaluation: bool = False,
) -> TokenizedPairs:
    """Tokenizes all pairs of some corpora; the ids are held in memory.

    Args:
        corpora: one or several, of scalar strings (source, target).
        preprocessor: `TextPreprocessor`, makes `source_ids`, uncut; or
            `StoredFeatures`, whose sources are their numbers.
        target_tokenizer: makes `target_ids` and labels.
        is_evaluation: whether pairs with a blank side, or a line that is too
            long, are kept.

    Example:
    >>> from kseq.data import TextPreprocessor
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> tokenizer = Tokenizer.train(lines, 270, "bpe")
    >>> pairs = tf.data.Dataset.from_tensor_slices((lines, lines))
    >>> pairs = tokenize_pairs(pairs, TextPreprocessor(tokenizer), tokenizer)
    >>> pairs.counts, pairs.longest_target(max_length=100)
    ((2,), 12)
    """
    if isinstance(corpora, tf.data.Dataset):
        corpora = [corpora]
    for pairs in corpora:
        _check_pairs(pairs)

    def tokenize(source, target):
        if not is_evaluation:
            good = are_usable(source, target)
            source, target = source[good], target[good]
        ids = (
            preprocessor.tokenize(source),
            target_tokenizer.tokenize_with_end(target)[0],
        )
        return [(x.flat_values, x.row_lengths()) for x in ids]

    sides, counts = ([], []), []
    with progress("Tokenizing"):
        for pairs in corpora:
            count = 0
            blocks = disable_autotuning(pairs.batch(_BLOCK))
            blocks = blocks.map(without_autograph(tokenize), **IN_PARALLEL)
            for block in blocks.as_numpy_iterator():
                count += len(block[0][1])
                for side, (ids, lengths) in zip(sides, block, strict=True):
                    dtype = dtype_of_ids(ids.max(initial=0) + 1)
                    side.append((ids.astype(dtype), lengths))
            counts.append(count)
    return TokenizedPairs(
        *(*map(_joined, sides), tuple(counts), preprocessor),
        target_tokenizer=target_tokenizer,
    )


def _check_pairs(pairs):
    spec = getattr(pairs, "element_spec", None)
    is_pair = isinstance(spec, tuple) and len(spec) == 2
    if not is_pair or spec[1].shape.rank not in (0, None):
        raise ArgumentError(
            "corpora must be data sets of (source, target), one pair an "
            "element, such as tf.data.Dataset.from_tensor_slices((sources, "
            f"targets)). Received: {spec or type(pairs).__name__}"
        )


def are_usable(sources, targets) -> tf.Tensor:
    """Whether pairs have no blank side and no very long line, (B,) bool."""
    texts = tf.stack([sources, targets])
    shown = tf.strings.strip(tf.strings.regex_replace(texts, BLANK, ""))
    sizes = tf.strings.length(shown)  # (2, B)
    return tf.reduce_all((sizes > 0) & (sizes <= LONGEST_LINE), axis=0)


def _joined(blocks):
    values, lengths = zip(*blocks, strict=True) if blocks else ([], [])
    none = np.zeros(0, np.uint16)
    offsets = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    return RaggedArray(np.concatenate([none, *values]), offsets)
