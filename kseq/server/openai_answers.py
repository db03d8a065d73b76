"""Answers as OpenAI's API gives them.

Reference: OpenAI's API reference, "Chat completions", "Completions" and
"Models".
"""

import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from kseq.server.event_stream import event
from kseq.server.json_answers import json_bytes
from kseq.server.openai_requests import TextRequest
from kseq.server.request_error import RequestError
from kseq.server.streamed_answer import StreamedPart

_LAST = b"[DONE]"
_STATUS_TYPES = {404: "not_found_error", 429: "rate_limit_error"}


class _Piece(NamedTuple):
    text: str
    tokens: int
    prompt_tokens: int
    finish_reason: str | None = None  # of the last one


async def whole_answer(
    request: TextRequest, parts: AsyncIterator[StreamedPart]
) -> bytes:
    """The JSON of an answer.

    Args:
        request: `TextRequest`.
        parts: see `streamed_answer`.
    """
    text, last = "", None
    async for last in _pieces(request, parts):
        text += last.text
    content: dict[str, Any] = {"text": text}
    if request.is_chat:
        content = {"message": {"role": "assistant", "content": text}}
    return json_bytes(
        {
            **_facts(request, is_chunk=False),
            **_choices(content, last.finish_reason),
            "usage": _usage(last),
        }
    )


async def events(
    request: TextRequest, parts: AsyncIterator[StreamedPart]
) -> AsyncIterator[bytes]:
    """The server-sent events of an answer.

    Args and RequestError as for `whole_answer`.
    """
    last, facts = None, _facts(request, is_chunk=True)

    def chunk(entries):
        return event(json_bytes({**facts, **entries}))

    async for piece in _pieces(request, parts):
        if request.is_chat and last is None:
            first = {"delta": {"role": "assistant", "content": ""}}
            yield chunk(_choices(first))
        last = piece
        if last.text:
            content = {"text": last.text}
            if request.is_chat:
                content = {"delta": {"content": last.text}}
            yield chunk(_choices(content))
    content = {"delta": {}} if request.is_chat else {"text": ""}
    yield chunk(_choices(content, last.finish_reason))
    if request.with_usage:
        yield chunk({"choices": [], "usage": _usage(last)})
    yield event(_LAST)


def error_object(error: RequestError) -> dict[str, Any]:
    """What a client gets for an error, a dict."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": str(error),
            "type": _STATUS_TYPES.get(error.status, kind),
            "param": None,
            "code": error.code.lower(),
        }
    }


def models_object(names: list[str]) -> dict[str, Any]:
    """The list of the models, a dict."""
    return {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": 0, "owned_by": "kseq"}
            for name in names
        ],
    }


async def _pieces(request, parts):
    """Parts, up to a stop string or the maximum number of tokens."""
    held, tokens = "", 0
    async with contextlib.aclosing(parts):
        async for part in parts:
            is_last = part.outputs is not None
            # END is no token of the text.
            number = part.tokens - (is_last and part.has_ended)
            if request.max_tokens and number > request.max_tokens:
                yield _Piece(held, tokens, part.prompt_tokens, "length")
                return
            held, tokens = held + part.text, max(number, 0)
            facts = tokens, part.prompt_tokens
            found = [held.find(stop) for stop in request.stop if stop in held]
            if found:
                yield _Piece(held[: min(found)], *facts, "stop")
                return
            if is_last:
                # The blank answer to a blank input has no tokens.
                is_whole = part.has_ended or not part.tokens
                reason = "stop" if is_whole else "length"
                yield _Piece(held, *facts, reason)
                return
            size = len(held) - _begun(held, request.stop)
            if size:
                yield _Piece(held[:size], *facts)
                held = held[size:]


def _begun(text, stops):
    """Characters at the end of a text with which a stop string may begin."""
    return max(
        (
            size
            for stop in stops
            for size in range(1, min(len(stop), len(text) + 1))
            if text.endswith(stop[:size])
        ),
        default=0,
    )


def _facts(request, is_chunk):
    """What an answer has, or each event of it, beside its choice."""
    kind = "chat.completion" if request.is_chat else "text_completion"
    if is_chunk and request.is_chat:
        kind += ".chunk"
    prefix = "chatcmpl" if request.is_chat else "cmpl"
    return {
        "id": f"{prefix}-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": request.model,
    }


def _choices(content, finish_reason=None):
    """The entry with the only choice; `content` is a dict."""
    choice = {
        "index": 0,
        **content,
        "logprobs": None,
        "finish_reason": finish_reason,
    }
    return {"choices": [choice]}


def _usage(last):
    return {
        "prompt_tokens": last.prompt_tokens,
        "completion_tokens": last.tokens,
        "total_tokens": last.prompt_tokens + last.tokens,
    }
