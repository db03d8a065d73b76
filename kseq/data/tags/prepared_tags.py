"""Sentences with a tag for each word that are prepared for training."""

import dataclasses
import os

from kseq.data.files.corpora import facts_and_problems
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.files.ragged_array import RaggedArray, mapped
from kseq.data.files.row_parts import read_rows
from kseq.data.tags.tagged_sentences import TaggedSentences
from kseq.data.tags.word_preprocessor import WordPreprocessor
from kseq.data.text.prepare_rows import refuse_other_ids
from kseq.data.text.tokenizer import Tokenizer

KIND = "sentences"


@dataclasses.dataclass(frozen=True)
class PreparedTags:
    """Sentences with tags that are prepared for training, see `prepare_tags`.

    Args:
        ids: the pieces of the words of training, (N, W, P), in files.
        train_tags: (N, W) int32, the number of the tag of each, in files.
        tags: see `TaggingCorpus`.
        tokenizer: made the ids.
        validation: TaggedSentences.
        facts: lines of text: the numbers of sentences.
        problems: lines of text: what is wrong with some of them.
    """

    ids: RaggedArray
    train_tags: RaggedArray
    tags: tuple[str, ...]
    tokenizer: Tokenizer
    validation: TaggedSentences
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def test(self) -> TaggedSentences:
        """The same sentences as `validation`."""
        return self.validation

    def tokenized(self, preprocessor: WordPreprocessor) -> RaggedArray:
        """The ids of training, (N, W, P).

        Raises:
            DataError: this is not the tokenizer of the folder, or it cuts
                sentences in another way.
        """
        own = WordPreprocessor(self.tokenizer)
        refuse_other_ids(KIND, preprocessor, own)
        return self.ids

    describe = facts_and_problems


def open_prepared_tags(folder: str | os.PathLike) -> PreparedTags:
    """Opens sentences that `prepare_tags` has written; reads no ids.

    Args:
        folder: that was given to it.

    Raises:
        DataError: the folder is incomplete, broken, or of a different kind.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        ids = RaggedArray.open_nested(*prepared.array(record, "ids"))
        words = mapped(
            prepared.path / "tags.values", "int32", (len(ids.values),)
        )
        return PreparedTags(
            ids,
            RaggedArray(words, ids.offsets),
            tuple(record["tags"]),
            Tokenizer.load(prepared.path / "source.model"),
            TaggedSentences.of(read_rows(prepared.path / "validation.jsonl")),
            facts=tuple(record["facts"]),
            problems=tuple(record["problems"]),
        )
