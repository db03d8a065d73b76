"""Running text that is prepared for training."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from kseq.data.files.corpora import facts_and_problems
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.files.ragged_array import check_offsets, mapped
from kseq.data.text.prepare_rows import refuse_tokenizer
from kseq.data.text.tokenizer import Tokenizer

KIND = "text"


@dataclasses.dataclass(frozen=True)
class PreparedText:
    """Running text that is prepared for training, see `prepare_text`.

    Args:
        ids: (N,) int, the tokens of training, in a file.
        tokenizer: made them.
        validation: list of str, documents.
        facts: lines of text: the amount of text.
        problems: see `TextCorpus`.

    Attributes:
        is_valid: None; see `TextCorpus`.
    """

    ids: np.ndarray
    tokenizer: Tokenizer
    validation: list[str]
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    is_valid: None = None

    @property
    def test(self) -> list[str]:
        """The same documents as `validation`."""
        return self.validation

    def tokenized(self, tokenizer: Tokenizer) -> np.ndarray:
        """The tokens of the training text.

        Raises:
            DataError: this is not the tokenizer of the folder.
        """
        if tokenizer.model != self.tokenizer.model:
            refuse_tokenizer(KIND)
        return self.ids

    describe = facts_and_problems


def open_prepared_text(folder: str | os.PathLike) -> PreparedText:
    """Opens text that `prepare_text` has written; reads no ids.

    Args:
        folder: that was given to it.

    Raises:
        DataError: the folder is incomplete, broken, or of a different kind.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        path, dtype, shape = prepared.array(record, "ids")
        return PreparedText(
            mapped(path.with_suffix(".values"), dtype, shape),
            Tokenizer.load(prepared.path / "source.model"),
            read_documents(prepared.path / "validation"),
            facts=tuple(record["facts"]),
            problems=tuple(record["problems"]),
        )


def documents_files(documents: list[str]) -> dict[str, bytes]:
    """The ends of the names of two files, and what is in them."""
    texts = [document.encode() for document in documents]
    sizes = np.array([len(text) for text in texts], np.int64)
    return {".text": b"".join(texts), ".sizes": sizes.tobytes()}


def read_documents(path: str | os.PathLike) -> list[str]:
    """Reads what `documents_files` has given."""
    text = Path(f"{path}.text").read_bytes()
    ends = np.cumsum(np.fromfile(f"{path}.sizes", np.int64))
    check_offsets(path, np.append(0, ends), len(text))
    starts = [0, *ends[:-1]]
    return [
        text[start:end].decode()
        for start, end in zip(starts, ends, strict=True)
    ]
