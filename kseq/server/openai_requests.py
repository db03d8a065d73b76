"""Requests of OpenAI's API for chat and completions, as those of signatures.

Reference: OpenAI's API reference, "Chat completions", "Completions" and
"Models".
"""

import secrets
from typing import Any, NamedTuple

import numpy as np

from kseq.answers import types_of_export
from kseq.server.json_requests import read_object
from kseq.server.request_error import RequestError
from kseq.server.signatures import SignatureRequest

CHAT, COMPLETION = "chat/completions", "completions"
_TURNS = 1000  # of a conversation; a model reads fewer
_STOPS = 4
_ALL = 2**30  # tokens
_READ = "text"  # the type of the parts of a message that are read
_ROLES = ("user", "assistant")
_SILENT = ("system", "developer")  # no model of kseq reads instructions
# What would change the answer, with the only value that is supported.
_FIXED = {
    "n": 1,
    "best_of": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logprobs": False,
    "top_logprobs": 0,
    "echo": False,
    "suffix": "",
    "logit_bias": {},
    "tools": [],
    "functions": [],
    "response_format": {"type": "text"},
}


class TextRequest(NamedTuple):
    """What a client asks for.

    Args:
        model: str, its name.
        given: list of str, the turns of a conversation, or one prompt.
        is_chat: bool.
        is_stream: bool, whether the text is wanted while it is being found.
        with_usage: bool, whether a stream ends with the number of tokens.
        max_tokens: int, of an answer; None for the limit of the model.
        stop: list of str, before which an answer ends.
        draws: dict, `temperature`, `top_p` and `seed`.
    """

    model: str
    given: list[str]
    is_chat: bool
    is_stream: bool
    with_usage: bool
    max_tokens: int | None
    stop: list[str]
    draws: dict[str, Any]


def read_text_request(body: bytes, is_chat: bool) -> TextRequest:
    """Reads the body of a request.

    Args:
        body: bytes.
        is_chat: bool, whether it has `messages`, and not a `prompt`.

    Raises:
        RequestError: if it is not one, or asks for what kseq does not have.
    """
    request = read_object(body)
    for name, only in _FIXED.items():
        if request.get(name) not in (None, only):
            raise RequestError(f"{name} is not supported")
    options = request.get("stream_options") or {}
    if not isinstance(options, dict):
        raise RequestError("stream_options must be an object")
    most = request.get("max_completion_tokens")
    if most is None:
        most = request.get("max_tokens")  # its old name
    if most is not None and (type(most) is not int or most < 1):
        raise RequestError("max_tokens must be an integer, 1 or more")
    return TextRequest(
        model=_string(request, "model"),
        given=_turns(request) if is_chat else [_prompt(request)],
        is_chat=is_chat,
        is_stream=_flag(request, "stream"),
        with_usage=_flag(options, "include_usage"),
        max_tokens=most,
        stop=_stop(request.get("stop")),
        draws={
            "temperature": _number(request, "temperature", 2.0),
            "top_p": _number(request, "top_p", 1.0),
            "seed": _seed(request.get("seed")),
        },
    )


def signature_request(request: TextRequest, servable: Any) -> SignatureRequest:
    """The request of a signature of a model.

    A model that draws its answers does so here.

    Args:
        request: `TextRequest`.
        servable: `Servable`.

    Raises:
        RequestError: if the model does not answer such a request.
    """
    if not answers_text(servable):
        raise RequestError(
            f"{servable.name} does not answer a text with a text"
        )
    source, _ = types_of_export(servable.signatures)
    if request.is_chat:
        if source.chat_input is None:
            raise RequestError(
                f"{servable.name} has no conversations; use /v1/{COMPLETION}"
            )
        given = source.chat_input(request.given)
    elif str not in source.types:
        raise RequestError(
            f"{servable.name} takes no prompt; use /v1/{CHAT} for a dialogue"
        )
    else:
        [given] = request.given
    is_list = isinstance(given, list)
    texts = [text.encode() for text in (given if is_list else [given])]
    array = np.array(texts, object)
    inputs = {source.name: array[None] if is_list else array}
    if "sample" not in servable.signatures:
        return SignatureRequest("serving_default", inputs)
    draws = request.draws
    inputs |= {
        "temperature": np.array([draws["temperature"]], np.float32),
        "top_p": np.array([draws["top_p"]], np.float32),
        "seed": np.array([draws["seed"]], np.int64),
    }
    return SignatureRequest("sample", inputs)


def first_tokens(request: TextRequest, given: SignatureRequest) -> int:
    """The tokens that are found in one go, which is faster than one by one.

    Args:
        request: `TextRequest`.
        given: what `signature_request` made of it.
    """
    if request.is_stream or request.stop:
        return 1
    if request.max_tokens is None:
        return _ALL
    # A beam settles several tokens at once, and too many are of no use.
    is_drawn = "temperature" in given.inputs
    return min(request.max_tokens, _ALL) if is_drawn else 1


def answers_text(servable: Any) -> bool:
    """Whether a model answers a prompt, or a conversation, with a text."""
    types = types_of_export(servable.signatures)
    if types is None:
        return False
    source, answer = types
    return answer.chats and (
        source.chat_input is not None or str in source.types
    )


def _turns(request):
    messages = request.get("messages")
    if not isinstance(messages, list) or len(messages) > _TURNS:
        raise RequestError(f"messages must be a list of 1 to {_TURNS} objects")
    turns = []
    for message in messages:
        if not isinstance(message, dict):
            raise RequestError("A message must be an object")
        role = message.get("role")
        if role in _SILENT:
            continue
        if role not in _ROLES:
            raise RequestError(
                f"The role of a message must be one of {', '.join(_ROLES)} "
                f"or {', '.join(_SILENT)}"
            )
        turns.append(_content(message.get("content")))
    if not turns:
        raise RequestError("messages has no turn of a user")
    return turns


def _content(content):
    if isinstance(content, list):
        content = "".join(map(_part, content))
    if not isinstance(content, str):
        raise RequestError("The content of a message must be a text")
    return content


def _part(part):
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or part.get("type") != _READ:
        raise RequestError("A part of a message must be of the type text")
    return text


def _prompt(request):
    prompt = request.get("prompt", "")
    if isinstance(prompt, list) and len(prompt) == 1:
        [prompt] = prompt
    if not isinstance(prompt, str):
        raise RequestError("prompt must be a text, or a list of one")
    return prompt


def _string(request, name):
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise RequestError(f"{name} must be a string")
    return value


def _flag(request, name):
    value = request.get(name)
    if value not in (None, True, False) or type(value) in (int, float):
        raise RequestError(f"{name} must be a boolean value")
    return bool(value)


def _number(request, name, most):
    value = request.get(name)
    if value is None:
        return 1.0
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise RequestError(f"{name} must be a number from 0 to {most:g}")
    return float(value)


def _seed(value):
    if value is None:
        return secrets.randbelow(2**31)
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise RequestError("seed must be an integer of 64 bits")
    return value


def _stop(value):
    strings = [value] if isinstance(value, str) else value or []
    if (
        not isinstance(strings, list)
        or len(strings) > _STOPS
        or not all(isinstance(each, str) and each for each in strings)
    ):
        raise RequestError(f"stop must be a string, or up to {_STOPS} of them")
    return strings
