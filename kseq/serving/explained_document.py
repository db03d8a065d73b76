"""A classified document with its attention weights."""

import re
from typing import Any, NamedTuple

_BYTE = re.compile(rb"<0x([89A-F][0-9A-F])>")  # of a character


class ExplainedDocument(NamedTuple):
    """A classified document with its attention weights, without padding.

    In a notebook it shows itself as a page.

    Args:
        sentences: L strings.
        sentence_weights: L floats that sum to 1; all 0 for no words at all.
        words: L lists. Joined and stripped, the words of a sentence are the
            sentence: one begins with the space before it, and may be a part
            of a written word.
        word_weights: L lists of the same lengths; each sums to 1.
        label: the most likely one.
        probability: of the label.
        truncated: bool, whether the document was cut.
    """

    sentences: list[str]
    sentence_weights: list[float]
    words: list[list[str]]
    word_weights: list[list[float]]
    label: str
    probability: float
    truncated: bool = False

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "ExplainedDocument":
        """Without the padding of one row of what `explain` returns.

        Args:
            row: dict of arrays, see `kseq.serving.Classifier`.
        """
        rows = [
            _whole_characters(*sentence)
            for sentence in zip(row["words"], row["word_weights"], strict=True)
        ]
        rows = [sentence for sentence in rows if sentence[0]]
        weights = row["sentence_weights"][: len(rows)]
        return cls(
            sentences=["".join(words).strip() for words, _ in rows],
            sentence_weights=[float(weight) for weight in weights],
            words=[words for words, _ in rows],
            word_weights=[weights for _, weights in rows],
            label=row["label"].decode(),
            probability=float(row["probability"]),
            truncated=bool(row.get("truncated", False)),
        )

    @property
    def is_empty(self) -> bool:
        """Whether no word has any letter."""
        return not any(word.strip() for words in self.words for word in words)

    @property
    def word_shares(self) -> list[list[float]]:
        """Each word's share of the attention, as `words`.

        It is the weight of the word within its sentence times the weight of
        that sentence. So the words of a sentence sum to the weight of the
        sentence, and all words to 1.
        """
        rows = zip(self.sentence_weights, self.word_weights, strict=True)
        return [[outer * inner for inner in weights] for outer, weights in rows]

    def to_json(self) -> dict[str, Any]:
        """Sentences and words with their weights, rounded to six digits."""
        return {
            "sentences": self.sentences,
            "sentence_weights": _rounded(self.sentence_weights),
            "words": self.words,
            "word_weights": [_rounded(row) for row in self.word_weights],
        }

    def _repr_html_(self):
        from kseq.pictures import document_page  # imports matplotlib

        return document_page([self])


def _whole_characters(words, weights):
    """Strings, and their weights, of words that may be bytes of characters."""
    characters = [[b"", 0.0]]
    for word, weight in zip(words, weights, strict=True):
        if found := _BYTE.fullmatch(word):  # exports of kseq 0.2 have it as is
            word = bytes.fromhex(found[1].decode())
        continues = len(word) == 1 and b"\x80" <= word < b"\xc0"
        if not (continues and _is_unfinished(characters[-1][0])):
            characters.append([b"", 0.0])
        characters[-1][0] += word
        characters[-1][1] += float(weight)
    real = [(text, weight) for text, weight in characters if text]
    return (
        [text.decode("utf-8", "replace") for text, _ in real],
        [weight for _, weight in real],
    )


def _is_unfinished(text):
    """Whether bytes are the beginning of a character."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def _rounded(weights):
    return [round(weight, 6) for weight in weights]
