"""Pairs that are prepared for training."""

import dataclasses
import os
from pathlib import Path

import tensorflow as tf

from kseq.data.files.corpora import facts_and_problems
from kseq.data.files.prepared_folder import MODELS, PreparedFolder
from kseq.data.files.ragged_array import RaggedArray, check_counts
from kseq.data.text.pair_tokenizers import load_pair_tokenizers
from kseq.data.text.references import split_examples
from kseq.data.text.text_preprocessor import TextPreprocessor
from kseq.data.text.tokenized_pairs import TokenizedPairs
from kseq.data.text.tokenizer import Tokenizer

KIND = "pairs"


@dataclasses.dataclass(frozen=True)
class PreparedPairs:
    """Pairs that are prepared for training, see `prepare_pairs`.

    Args:
        source: the ids of the sources of training, each with END.
        target: the ids of the targets, each with END.
        counts: the number of training pairs of each corpus, one after the
            other.
        tokenizers: of source and target; one and the same if they are equal.
        validation: `tf.data.Dataset` of scalar strings (source, target).
        test: the same.
        facts: lines of text: the numbers of pairs.
        problems: lines of text: what is wrong with some of them.
        of_tables: see `Corpus`.
        weights: see `Corpus`.
        alignment: see `TokenizedPairs`.
    """

    source: RaggedArray
    target: RaggedArray
    counts: tuple[int, ...]
    tokenizers: tuple[Tokenizer, Tokenizer]
    validation: tf.data.Dataset
    test: tf.data.Dataset
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    of_tables: bool = False
    weights: tuple[float, ...] = ()
    alignment: RaggedArray | None = None

    def tokenized(self, preprocessor: TextPreprocessor) -> TokenizedPairs:
        """The training pairs, which were tokenized when they were prepared.

        Args:
            preprocessor: of the sources, with their tokenizer.
        """
        return TokenizedPairs(
            *(self.source, self.target, self.counts, preprocessor),
            target_tokenizer=self.tokenizers[1],
            alignment=self.alignment,
        )

    examples = split_examples
    describe = facts_and_problems


def open_prepared(folder: str | os.PathLike) -> PreparedPairs:
    """Opens pairs that `prepare_pairs` has written; reads no ids.

    Args:
        folder: that was given to it.

    Raises:
        DataError: the folder is incomplete, broken, or of a different kind.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        arrays = {
            side: RaggedArray.open(*prepared.array(record, side))
            for side in ("source", "target", "alignment")
            if side in record["arrays"]
        }
        counts = tuple(record["counts"])
        check_counts(folder, sum(counts), *map(len, arrays.values()))
        if min(counts) < 0:
            raise ValueError(f"counts={counts}")
        validation = _pairs(prepared.path, "validation")
        has_test = "test.source" in record["files"]
        return PreparedPairs(
            **arrays,
            counts=counts,
            tokenizers=load_pair_tokenizers(
                *(prepared.path / name for name in MODELS)
            ),
            validation=validation,
            test=_pairs(prepared.path, "test") if has_test else validation,
            facts=tuple(record["facts"]),
            problems=tuple(record["problems"]),
            of_tables=record["of_tables"],
        )


def _pairs(folder, split) -> tf.data.Dataset:
    sides = (
        Path(folder, f"{split}.{side}").read_bytes().split(b"\n")[:-1]
        for side in ("source", "target")
    )
    return tf.data.Dataset.from_tensor_slices(
        tuple(tf.constant(side, tf.string) for side in sides)
    )
