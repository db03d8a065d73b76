"""The attention of an answer to its source."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kseq.serving.answer import rounded
from kseq.sources import source_named


class Attention(NamedTuple):
    """Which source tokens each token of an answer was made from.

    In a notebook it shows itself as a picture.

    Args:
        source_tokens: S strings.
        target_tokens: T strings.
        weights: (T, S) float array; each row sums to 1.
        truncated: bool, whether the input was cut.
        picture: where the source tokens are cells of a picture, or times of
            a recording: its encoded bytes, or those of its spectrogram, b""
            if they are not known; None for text.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    weights: np.ndarray
    truncated: bool = False
    picture: bytes | None = None

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Attention":
        """Without the padding of one row of what `explain` returns.

        Args:
            row: dict of arrays: `source_tokens` (S,), `target_tokens` (T,),
                `attention` (T, S); `truncated` (), unless it is of an export
                of version 0.1 or of one head.
        """
        names = ("source_tokens", "target_tokens")
        source, target = (
            [token.decode("utf-8", "replace") for token in row[name] if token]
            for name in names
        )
        # Between the turns of a dialogue there is padding, too.
        columns, rows = (
            np.flatnonzero([bool(token) for token in row[name]])
            for name in names
        )
        weights = row["attention"][np.ix_(rows, columns)]
        return cls(source, target, weights, bool(row.get("truncated", False)))

    @property
    def turn_weights(self) -> np.ndarray:
        """The sums over each turn of a dialogue, (T, N) float array.

        A turn ends with END; any other source is one turn.
        """
        from kseq.pictures.piece_texts import turn_sums  # predict needs none

        return turn_sums(self.weights, self.source_tokens)

    def to_json(self) -> dict[str, Any]:
        """The same in lists, weights rounded to six digits."""
        return {
            "source_tokens": self.source_tokens,
            "target_tokens": self.target_tokens,
            "weights": rounded(self.weights),
        }

    def _repr_png_(self):
        from kseq.pictures import (
            attention_picture,
            grid_picture,
            speech_picture,
            turn_attention_picture,
        )

        tokens = self.weights, self.source_tokens, self.target_tokens
        if self.picture is None:
            of_dialogue = self.source_tokens.count("</s>") > 1
            draw = turn_attention_picture if of_dialogue else attention_picture
            return draw(*tokens)
        are_cells = any("," in token for token in self.source_tokens)
        draw = grid_picture if are_cells else speech_picture
        return draw(*tokens, self.picture)


def with_pictures(
    attentions: Iterable[Attention], source: str, inputs: Sequence[Any]
) -> list[Attention]:
    """A list of `Attention`, with what is drawn of the inputs.

    Args:
        attentions: iterable of `Attention`.
        source: str, what the signatures call an input.
        inputs: list of them.
    """
    draw = source_named(source).draw
    if draw is None:
        return list(attentions)
    return [
        attention._replace(picture=draw(each, *_seconds_read(attention)))
        for attention, each in zip(attentions, inputs, strict=True)
    ]


def _seconds_read(attention):
    """How much of a recording was read, if it was cut; otherwise nothing."""
    if not attention.truncated or not attention.source_tokens:
        return ()
    first, last = map(float, np.take(attention.source_tokens, [0, -1]))
    return (last + (last - first) / max(len(attention.source_tokens) - 1, 1),)


def page_of_attentions(attentions: Iterable[Attention], source: str) -> str:
    """HTML of some `Attention`, see `kseq.pictures.attention_page`."""
    from kseq.pictures import attention_page  # predict needs none

    draws = source_named(source).draw is not None
    return attention_page(attentions, of_pictures=draws)
