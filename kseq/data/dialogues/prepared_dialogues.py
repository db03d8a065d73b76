"""Dialogues that are prepared for training."""

import dataclasses
import os

import numpy as np

from kseq.data.dialogues.dialogue_preprocessor import DialoguePreprocessor
from kseq.data.dialogues.dialogues import Dialogues, answers_of
from kseq.data.dialogues.turn_ranges import TurnRanges
from kseq.data.files.corpora import facts_and_problems
from kseq.data.files.data_error import DataError
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.files.ragged_array import (
    RaggedArray,
    check_counts,
    check_offsets,
    mapped,
)
from kseq.data.files.row_parts import read_rows
from kseq.data.text.prepare_rows import refuse_tokenizer
from kseq.data.text.tokenized_pairs import TokenizedPairs
from kseq.data.text.tokenizer import Tokenizer

KIND = "dialogues"


@dataclasses.dataclass(frozen=True)
class PreparedDialogues:
    """Dialogues that are prepared for training, see `prepare_dialogues`.

    Args:
        ids: the pieces of the turns of training, each with END, (D, N, W), in
            files.
        answers: (D + 1,) int64, how many answers the dialogues before each
            have, and all of them, in a file.
        tokenizer: made the ids.
        validation: Dialogues.
        facts: lines of text: the numbers of dialogues and answers.
        problems: lines of text: what is wrong with some of them.
    """

    ids: RaggedArray
    answers: np.ndarray
    tokenizer: Tokenizer
    validation: Dialogues
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def train(self) -> Dialogues:
        """Raises DataError: the folder does not have the text of training."""
        raise DataError(
            "Prepared dialogues do not contain the training texts, which this "
            "recipe needs: give the file of dialogues."
        )

    @property
    def test(self) -> Dialogues:
        """The same dialogues as `validation`."""
        return self.validation

    def tokenized(self, preprocessor: DialoguePreprocessor) -> TokenizedPairs:
        """The ids of the turns and answers of training.

        Raises:
            DataError: this is not the tokenizer of the folder.
        """
        if preprocessor.tokenizer.model != self.tokenizer.model:
            refuse_tokenizer(KIND)
        contexts = TurnRanges(self.ids, self.answers, preprocessor)
        answers = TurnRanges(self.ids, self.answers)
        return TokenizedPairs(contexts, answers, (len(answers),), preprocessor)

    describe = facts_and_problems


def open_prepared_dialogues(
    folder: str | os.PathLike, max_turns: int = 5
) -> PreparedDialogues:
    """Opens dialogues that `prepare_dialogues` has written; reads no ids.

    Args:
        folder: that was given to it.
        max_turns: of validation, see `read_dialogue_corpus`.

    Raises:
        DataError: the folder is incomplete, broken, or of a different kind.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        [count] = record["counts"]
        held_out = read_rows(prepared.path / "validation.jsonl")
        ids = RaggedArray.open_nested(*prepared.array(record, "ids"))
        path = prepared.path / "answers.values"
        answers = mapped(path, "int64", (count + 1,))
        check_counts(folder, count, len(ids))
        check_offsets(path, answers, answers[-1])
        has_answers = np.diff(answers) <= np.diff(ids.offsets)
        check_counts(folder, count, has_answers.sum())
        return PreparedDialogues(
            ids,
            answers,
            Tokenizer.load(prepared.path / "source.model"),
            answers_of(held_out, max_turns),
            facts=tuple(record["facts"]),
            problems=tuple(record["problems"]),
        )
