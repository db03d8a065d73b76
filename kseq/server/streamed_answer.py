"""The answer to one input, while it is being found."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import numpy as np

from kseq.server.request_error import RequestError
from kseq.serving.answer_stream import (
    STREAM_NEXT,
    STREAM_START,
    STREAM_TEXT,
    state_of,
)

_GROWING = "text"  # the output that is sent in parts


class StreamedPart(NamedTuple):
    """What an answer has more than before.

    Args:
        text: str.
        tokens: int, of the answer so far; 0 if it is not known.
        prompt_tokens: int, of the input; 0 if it is not known.
        outputs: dict, name -> `np.ndarray`, those of the whole answer, in the
            last part, or none where it was cut; before that None.
        has_ended: bool, of the last part, whether the answer is complete, and
            not cut at its length limit or at the maximum number of tokens.
    """

    text: str
    tokens: int = 0
    prompt_tokens: int = 0
    outputs: dict[str, np.ndarray] | None = None
    has_ended: bool = True


async def streamed_answer(
    batcher: Any,
    servable: Any,
    request: Any,
    timeout: float,
    more: int = 1,
    most: int | None = None,
) -> AsyncIterator[StreamedPart]:
    """The parts of an answer, none of which is revised by a later one.

    Each is a call of its own, so that other requests are answered between
    them. A signature whose answers cannot be streamed gives one part.

    Args:
        batcher: `Batcher`.
        servable: `Servable`.
        request: `SignatureRequest` of one input, to a signature with the
            output `text`.
        timeout: float, seconds for all parts.
        more: int, tokens that the first part must have, unless the answer has
            fewer.
        most: int, of an answer with more tokens the text of the first ones is
            the last part; or None. An export of an earlier version gives all.

    Yields:
        `StreamedPart`; at least one.

    Raises:
        RequestError: if there are several inputs or no `text`, and what
            `Batcher.answer` raises.
    """
    if _GROWING not in servable.signatures[request.signature].outputs:
        raise RequestError(
            f'Signature "{request.signature}" has no output text to stream'
        )
    if any(value.shape[:1] != (1,) for value in request.inputs.values()):
        raise RequestError("A stream answers one input. Send one at a time.")
    clock = asyncio.get_running_loop().time
    end = clock() + timeout

    async def call(signature, inputs):
        left = max(end - clock(), 0.0)
        continues = signature in (STREAM_NEXT, STREAM_TEXT)
        return await batcher.answer(
            servable, signature, inputs, left, continues
        )

    if request.signature != servable.streamed:
        outputs = await call(request.signature, request.inputs)
        yield StreamedPart(_text(outputs), outputs=outputs)
        return
    started = await call(STREAM_START, request.inputs)
    found, shown = started, 0
    while True:
        wanted = {"more": np.array([more], np.int32)}
        found = await call(STREAM_NEXT, wanted | state_of(found))
        more = 1
        tokens = int(found["tokens"][0]) - int(found["ended"][0])
        if most is not None and tokens > most and "ids" in found:
            cut = await call(STREAM_TEXT, {"ids": found["ids"][:, :most]})
            text, number = _text(cut), int(started["prompt_tokens"][0])
            yield StreamedPart(text[shown:], most, number, {}, has_ended=False)
            return
        text = _text(found)
        is_last = bool(found["done"][0])
        outputs = None
        if is_last:
            names = ("score", _GROWING)
            outputs = {name: found[name] for name in names}
            outputs["truncated"] = started["truncated"]
        if is_last or len(text) > shown:
            yield StreamedPart(
                text[shown:],
                int(found["tokens"][0]),
                int(started["prompt_tokens"][0]),
                outputs,
                bool(found["ended"][0]),
            )
            shown = len(text)
        if is_last:
            return


def _text(outputs):
    return outputs[_GROWING][0].decode("utf-8", "replace")
