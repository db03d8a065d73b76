"""An answer while it is being found."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from kseq.devices import check_not_forked
from kseq.serving.answer import Answer, answer_of
from kseq.serving.predict_batches import (
    Signatures,
    check_values,
    to_tensor,
)

STREAM_START, STREAM_NEXT = "stream_start", "stream_next"
STREAM_TEXT = "stream_text"
STATE = "state_"


class AnswerStream:
    """An iterable of the parts of an answer, as soon as they are settled.

    Args:
        signatures: dict with the functions `stream_start` and `stream_next`,
            see `kseq.serving.Generator.stream_signatures`.
        columns: dict, name -> list of one input of `stream_start`.

    Attributes:
        answer: the `Answer`, after the last part; before that None.

    Raises:
        ValueError: if an input is of another kind.
    """

    def __init__(
        self, signatures: Signatures, columns: Mapping[str, Sequence[Any]]
    ):
        self.signatures = signatures
        self.columns = columns
        self.answer: Answer | None = None
        if columns:
            check_values(signatures[STREAM_START], columns)

    @classmethod
    def of_answer(cls, answer: Answer) -> "AnswerStream":
        """The stream of an answer that is known: one part."""
        stream = cls({}, {})
        stream.answer = answer
        return stream

    def __iter__(self) -> Iterator[str]:
        if self.answer is not None:
            yield self.answer.hypotheses[0].text
            return
        check_not_forked()
        inputs = {name: to_tensor(each) for name, each in self.columns.items()}
        started = self.signatures[STREAM_START](**inputs)
        state, one = state_of(started), tf.constant([1])
        is_done, shown = False, 0
        while not is_done:
            found = self.signatures[STREAM_NEXT](more=one, **state)
            state = state_of(found)
            text = found["text"].numpy()[0].decode("utf-8", "replace")
            is_done = bool(found["done"].numpy()[0])
            if is_done:
                self.answer = answer_of(
                    {
                        "text": found["text"].numpy()[0],
                        "score": found["score"].numpy()[0],
                        "truncated": started["truncated"].numpy()[0],
                    }
                )
            if len(text) > shown:
                yield text[shown:]
                shown = len(text)


def state_of(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a search among the outputs of these signatures."""
    return {
        name: value for name, value in outputs.items() if name.startswith(STATE)
    }
