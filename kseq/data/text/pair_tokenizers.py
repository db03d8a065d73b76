"""The tokenizers of source and target."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from typing import Any

from kseq.data.files.data_error import DataError
from kseq.data.text.tokenizer import Tokenizer

_SIDES = ("source", "target")


@dataclasses.dataclass(frozen=True)
class PairTokenizers:
    """How the tokenizers of source and target are made.

    Args:
        vocab_size: of each tokenizer that is trained.
        pieces: one `model_type`, see `Tokenizer.train`, for a vocabulary of
            source and target together; or two, each with its own.
        kept: two tokenizers, or the same one twice; then none is trained.

    Raises:
        DataError: there are not one or two types of pieces.

    Example:
    >>> PairTokenizers(vocab_size=300).options()
    {'vocab_size': 300, 'pieces': ['bpe']}
    """

    vocab_size: int = 8000
    pieces: tuple[str, ...] = ("bpe",)
    kept: tuple[Tokenizer, Tokenizer] | None = None

    def __post_init__(self):
        if len(self.pieces) not in (1, 2):
            raise DataError(
                "--pieces takes one type for source and target together, or "
                f"two. Received: {' '.join(self.pieces) or 'none'}"
            )

    def options(self) -> dict[str, Any]:
        """What the tokenizers depend on besides the text, for JSON."""
        if self.kept is not None:
            return kept_tokenizers(self.kept)
        return {"vocab_size": self.vocab_size, "pieces": [*self.pieces]}

    def of(self, corpus) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of a text; the same one twice if they are equal.

        Args:
            corpus: `Corpus`, or another object with its method `lines`. The
                text is read to train tokenizers, or to warn of characters
                that a kept one of characters does not have.
        """
        if self.kept is not None:
            both = self.kept
            for tokenizer, side in zip(self.kept, _SIDES, strict=True):
                tokenizer.report_unknown(corpus.lines([side]))
        elif len(self.pieces) == 1:
            lines = corpus.lines(_SIDES)
            both = [Tokenizer.train(lines, self.vocab_size, *self.pieces)] * 2
        else:
            both = [
                Tokenizer.train(corpus.lines([side]), self.vocab_size, kind)
                for side, kind in zip(_SIDES, self.pieces, strict=True)
            ]
        return _one_if_equal(*both)


def load_pair_tokenizers(
    source: str | os.PathLike, target: str | os.PathLike
) -> tuple[Tokenizer, Tokenizer]:
    """Reads the tokenizers of source and target; one twice if they are equal.

    Args:
        source: path, see `Tokenizer.load`.
        target: path.
    """
    return _one_if_equal(Tokenizer.load(source), Tokenizer.load(target))


def kept_tokenizers(kept: Sequence[Tokenizer]) -> dict[str, Any]:
    """What identifies tokenizers that are kept, for JSON."""
    hashes = [hashlib.sha256(each.model).hexdigest() for each in kept]
    return {"kept": hashes}


def refuse_other_tokenizers(
    kept: Sequence[Tokenizer] | None, prepared: Sequence[Tokenizer]
):
    """Raises DataError unless the tokenizers that are kept made the ids."""
    if kept and kept_tokenizers(kept) != kept_tokenizers(prepared):
        raise DataError(
            "The pairs were not prepared with the tokenizers of the run to "
            "start from. Prepare them with --from RUN, or train with "
            "--new-tokenizer."
        )


def _one_if_equal(source, target):
    return (source, source if source.model == target.model else target)
