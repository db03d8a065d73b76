"""Documents that are prepared for training."""

import dataclasses
import os

import numpy as np

from kseq.data.documents.document_preprocessor import DocumentPreprocessor
from kseq.data.documents.documents import Documents
from kseq.data.files.corpora import facts_and_problems
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.files.ragged_array import RaggedArray, check_counts, mapped
from kseq.data.files.row_parts import read_rows
from kseq.data.text.prepare_rows import refuse_other_ids
from kseq.data.text.tokenizer import Tokenizer

KIND = "documents"


@dataclasses.dataclass(frozen=True)
class PreparedDocuments:
    """Documents that are prepared for training, see `prepare_documents`.

    Args:
        ids: the pieces of the documents of training, (N, L, W), in files.
        train_labels: (N,) int32, the number of the label of each, in a file.
        labels: see `DocumentCorpus`.
        tokenizer: made the ids.
        in_lines: whether each line of a text is a sentence.
        validation: Documents.
        facts: lines of text: the numbers of documents.
        problems: lines of text: what is wrong with some of them.
    """

    ids: RaggedArray
    train_labels: np.ndarray
    labels: tuple[str, ...]
    tokenizer: Tokenizer
    in_lines: bool
    validation: Documents
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def test(self) -> Documents:
        """The same documents as `validation`."""
        return self.validation

    def tokenized(self, preprocessor: DocumentPreprocessor) -> RaggedArray:
        """The ids of training, (N, L, W).

        Raises:
            DataError: this is not the tokenizer of the folder, or it cuts
                documents in another way.
        """
        own = DocumentPreprocessor(self.tokenizer, in_lines=self.in_lines)
        refuse_other_ids(KIND, preprocessor, own)
        return self.ids

    describe = facts_and_problems


def open_prepared_documents(folder: str | os.PathLike) -> PreparedDocuments:
    """Opens documents that `prepare_documents` has written; reads no ids.

    Args:
        folder: that was given to it.

    Raises:
        DataError: the folder is incomplete, broken, or of a different kind.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        [count] = record["counts"]
        ids = RaggedArray.open_nested(*prepared.array(record, "ids"))
        check_counts(folder, count, len(ids))
        rows, in_lines = prepared.path / "validation.jsonl", record["in_lines"]
        return PreparedDocuments(
            ids,
            mapped(prepared.path / "labels.values", "int32", (count,)),
            tuple(record["labels"]),
            Tokenizer.load(prepared.path / "source.model"),
            in_lines,
            Documents.of(read_rows(rows), in_lines),
            facts=tuple(record["facts"]),
            problems=tuple(record["problems"]),
        )
