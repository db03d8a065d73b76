"""OpenAI's API for chat and completions."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest

from kseq.server import ModelStore
from kseq.server.openai_answers import _begun, whole_answer
from kseq.server.openai_requests import (
    answers_text,
    read_text_request,
    signature_request,
)
from kseq.server.request_error import RequestError
from kseq.server.streamed_answer import StreamedPart
from tests.server.streaming_models import save_beams
from tests.server.test_connections import Server

CHAT, COMPLETE = "/v1/chat/completions", "/v1/completions"
DRAWS = {"temperature": 0.5, "top_p": 0.9, "seed": 7}
DRAWN = "|0.5|0.9|7"


@pytest.fixture(scope="module")
def store(streaming_store):
    return streaming_store


def said(*texts):
    """Messages, in turns."""
    roles = ("user", "assistant")
    return [
        {"role": roles[place % 2], "content": text}
        for place, text in enumerate(texts)
    ]


def chat(client, *texts, model="chat", **options):
    body = {"model": model, "messages": said(*texts), **DRAWS, **options}
    return client.post(CHAT, json=body)


def complete(client, prompt, model="writer", **options):
    body = {"model": model, "prompt": prompt, **DRAWS, **options}
    return client.post(COMPLETE, json=body)


def chunks_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def end_of(answer, is_stream):
    """The text of a completion, and why it ends there."""
    if is_stream:
        chunks = [chunk["choices"][0] for chunk in chunks_of(answer)]
        text = "".join(chunk["text"] for chunk in chunks)
        return text, chunks[-1]["finish_reason"]
    [choice] = answer.json()["choices"]
    return choice["text"], choice["finish_reason"]


def test_chat(client):
    answer = chat(client, "hi", "hello", "ho").json()
    now = time.time()
    assert answer.pop("id").startswith("chatcmpl-")
    assert now - 60 < answer.pop("created") <= now
    content = "ho" + DRAWN
    assert answer == {
        "object": "chat.completion",
        "model": "chat",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 2,
            "completion_tokens": len(content),
            "total_tokens": 2 + len(content),
        },
    }


def test_completion(client):
    answer = complete(client, "once").json()
    assert answer.pop("id").startswith("cmpl-")
    assert answer["object"] == "text_completion"
    [choice] = answer["choices"]
    assert choice == {
        "index": 0,
        "text": "once" + DRAWN,
        "logprobs": None,
        "finish_reason": "stop",
    }
    # A list of one prompt is one, too.
    again = complete(client, ["once"]).json()
    assert again["choices"] == answer["choices"]


@pytest.mark.parametrize("with_usage", [False, True])
def test_chat_in_chunks(client, with_usage):
    options = {"stream": True}
    if with_usage:
        options["stream_options"] = {"include_usage": True}
    chunks = chunks_of(chat(client, "ho", **options))
    if with_usage:
        last = chunks.pop()
        assert last["choices"] == []
        assert last["usage"]["completion_tokens"] == len("ho" + DRAWN)
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    text = [choice["delta"]["content"] for choice in choices[1:-1]]
    assert text == list("ho" + DRAWN)
    assert choices[-1]["delta"] == {}
    reasons = [choice["finish_reason"] for choice in choices]
    assert reasons == [None] * (len(choices) - 1) + ["stop"]


def test_completion_in_chunks(client):
    chunks = chunks_of(complete(client, "ab", stream=True))
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [c["text"] for c in choices] == [*("ab" + DRAWN), ""]
    assert choices[-1]["finish_reason"] == "stop"


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("prompt", "options", "text", "reason"),
    [
        ("abcd", {"max_tokens": 2}, "ab", "length"),
        ("abcd", {"max_completion_tokens": 1}, "a", "length"),
        (
            "abcd",
            {"max_completion_tokens": None, "max_tokens": 1},
            "a",
            "length",
        ),
        ("abcd", {"max_tokens": 4 + len(DRAWN)}, "abcd" + DRAWN, "stop"),
        ("abcd", {"stop": "cd"}, "ab", "stop"),
        ("abcd", {"stop": ["x", "bc", "c"]}, "a", "stop"),
        ("abab", {"stop": "abc"}, "abab" + DRAWN, "stop"),
        ("abcd", {"stop": "abcd"}, "", "stop"),
        ("abcd", {"stop": ["7."]}, "abcd" + DRAWN, "stop"),
        ("abcd", {"stop": "cd", "max_tokens": 3}, "abc", "length"),
        ("abcd", {"stop": None, "max_tokens": None}, "abcd" + DRAWN, "stop"),
    ],
)
def test_where_it_ends(client, prompt, options, text, reason, is_stream):
    answer = complete(client, prompt, stream=is_stream, **options)
    assert end_of(answer, is_stream) == (text, reason)


@pytest.fixture(scope="module")
def beams(tmp_path_factory):
    """Serves models that settle four letters at once."""
    store = ModelStore(save_beams(tmp_path_factory.mktemp("beams")), labels={})
    store.poll()
    assert store.is_ready
    yield store
    store.close()


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("model", "prompt", "options", "text", "reason"),
    [
        ("beam", "abcdefgh", {"max_tokens": 2}, "AB", "length"),
        ("beam", "abcdefgh", {"max_tokens": 4}, "ABCD", "length"),
        ("beam", "abcdefgh", {"max_tokens": 5}, "ABCDE", "length"),
        ("beam", "abcdefgh", {"max_tokens": 7}, "ABCDEFG", "length"),
        ("beam", "abcdefgh", {"max_tokens": 8}, "ABCDEFGH", "stop"),
        ("beam", "äöü€", {"max_tokens": 3}, "ÄÖÜ", "length"),
        ("beam", "ab.", {"max_tokens": 3}, "AB.", "length"),
        ("beam", "abcdef", {"max_tokens": 5, "stop": "DE"}, "ABC", "stop"),
        ("beam", "abcdef", {"max_tokens": 5, "stop": "EF"}, "ABCDE", "length"),
        ("old beam", "abcdefgh", {"max_tokens": 5}, "ABCD", "length"),
    ],
)
def test_what_is_settled_at_once_is_cut(
    beams, open_client, model, prompt, options, text, reason, is_stream
):
    client = open_client(beams)
    answer = complete(client, prompt, model, stream=is_stream, **options)
    assert end_of(answer, is_stream) == (text, reason)
    if not is_stream:
        tokens = answer.json()["usage"]["completion_tokens"]
        assert tokens == len(text) or reason == "stop"


def test_the_length_of_a_stop_string_takes_no_time():
    """It blocks all requests: only what the text may end with is compared."""

    class Stop(str):
        def __getitem__(self, part):
            assert part.stop <= len("text")
            return super().__getitem__(part)

    assert _begun("text", [Stop("t" * 9), Stop("tex"), Stop("x" * 9)]) == 1
    assert _begun("text", [Stop("text and more"), Stop("xt" * 2)]) == 4


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({}, 1),
        ({"max_tokens": 3}, 2),
        ({"stop": "|"}, 5),
        ({"max_tokens": 1}, 2),
        ({"stream": True}, len("abcd" + DRAWN) + 1),
    ],
)
def test_tokens_that_nobody_waits_for_are_found_at_once(
    store, client, monkeypatch, options, calls
):
    servable = store.find("writer")
    run, names = servable.run, []

    def count(signature, inputs):
        names.append(signature)
        return run(signature, inputs)

    monkeypatch.setattr(servable, "run", count)
    assert complete(client, "abcd", **options).status_code == 200
    assert names == ["stream_start"] + ["stream_next"] * calls


def test_the_length_limit_of_the_model(client):
    """What ends with a "." has no END."""
    answer = complete(client, "ab.", model="upper").json()
    [choice] = answer["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("AB.", "length")
    assert answer["usage"]["completion_tokens"] == 3


def test_a_blank_answer_is_whole():
    """It has no END either: the model is not asked."""
    body = json.dumps({"model": "m", "messages": said(" ")}).encode()
    request = read_text_request(body, is_chat=True)

    async def parts():
        yield StreamedPart("", 0, 1, {}, has_ended=False)

    answer = json.loads(asyncio.run(whole_answer(request, parts())))
    [choice] = answer["choices"]
    assert choice["message"]["content"] == ""
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("model", ["upper", "whole"])
def test_translators(client, model):
    """The last turn of a chat, or a prompt; also without a stream."""
    [choice] = chat(client, "a", "b", "c", model=model).json()["choices"]
    assert choice["message"]["content"] == "C"
    [choice] = complete(client, "c", model=model).json()["choices"]
    assert choice["text"] == "C"
    chunks = chunks_of(chat(client, "cd", model=model, stream=True))
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
    assert text == "CD"


def test_instructions_are_not_read(client):
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "image_url"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "h"},
                {"type": "text", "text": "i"},
            ],
        },
    ]
    body = {"model": "chat", "messages": messages, **DRAWS}
    [choice] = client.post(CHAT, json=body).json()["choices"]
    assert choice["message"]["content"] == "hi" + DRAWN


def test_without_a_seed_answers_are_drawn_anew(client):
    texts = {
        complete(client, "a", seed=None).json()["choices"][0]["text"]
        for _ in range(3)
    }
    assert len(texts) == 3
    # The defaults are those of OpenAI.
    body = {"model": "writer", "prompt": "a", "seed": 3}
    answer = client.post(COMPLETE, json=body).json()
    assert answer["choices"][0]["text"] == "a|1.0|1.0|3"


def test_the_list_of_models(client):
    answer = client.get("/v1/models").json()
    assert answer["object"] == "list"
    names = [model["id"] for model in answer["data"]]
    assert names == ["upper", "whole", "chat", "writer"]
    assert {model["object"] for model in answer["data"]} == {"model"}


BAD = [
    ({"model": None}, "model must be"),
    ({"model": 3}, "model must be"),
    ({"messages": "hi"}, "messages must be"),
    ({"messages": []}, "no turn"),
    ({"messages": [3]}, "must be an object"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
    ({"messages": [{"role": "user"}]}, "content"),
    ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "type text"),
    ({"messages": said("a") * 1001}, "1000"),
    ({"n": 2}, "n is not supported"),
    ({"logprobs": True}, "logprobs is not"),
    ({"tools": [{}]}, "tools is not"),
    ({"frequency_penalty": 0.5}, "frequency_penalty is not"),
    ({"response_format": {"type": "json_object"}}, "response_format is not"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"temperature": float("nan")}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"seed": 0.5}, "seed"),
    ({"seed": 2**63}, "seed"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 2.5}, "max_tokens"),
    ({"stop": ""}, "stop"),
    ({"stop": ["a"] * 5}, "stop"),
    ({"stop": [3]}, "stop"),
    ({"stop": 3}, "stop"),
    ({"stream": "yes"}, "stream"),
    ({"stream": 1}, "stream"),
    ({"stream_options": 3}, "stream_options"),
    ({"stream_options": {"include_usage": 3}}, "include_usage"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_refused(client, change, message):
    body = {"model": "chat", "messages": said("hi"), **change}
    content = json.dumps(body)
    headers = {"content-type": "application/json"}
    answer = client.post(CHAT, content=content, headers=headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert message in error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == "invalid_argument"


@pytest.mark.parametrize("prompt", [3, ["a", "b"], [1, 2], {"a": 1}, [[1]]])
def test_prompts_that_are_no_text(client, prompt):
    answer = complete(client, prompt)
    assert answer.status_code == 400
    assert "prompt" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", [CHAT, COMPLETE])
@pytest.mark.parametrize(
    "content", ["", "x", "[]", '"a"', '{"model": "\\ud800"}']
)
def test_broken_bodies(client, path, content):
    answer = client.post(path, content=content)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_the_wrong_model(client):
    answer = chat(client, "hi", model="x")
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "not_found_error"
    answer = chat(client, "hi", model="writer")
    assert answer.status_code == 400
    assert "use /v1/completions" in answer.json()["error"]["message"]
    answer = complete(client, "hi", model="chat")
    assert answer.status_code == 400
    assert "use /v1/chat/completions" in answer.json()["error"]["message"]


def test_models_without_a_text(models, open_store, open_client):
    client = open_client(open_store(models))
    for model in ("my films",):
        answer = chat(client, "hi", model=model)
        assert answer.status_code == 400
        assert "does not answer" in answer.json()["error"]["message"]


@pytest.mark.parametrize("source", ["image", "audio", "features", "frames"])
def test_models_of_what_is_no_text(source):
    """Each of the two APIs told a client to use the other one."""
    outputs = dict.fromkeys(["text", "score", "truncated"])
    default = SimpleNamespace(inputs={source: None}, outputs=outputs)
    signatures = {"serving_default": default}
    servable = SimpleNamespace(name="captions", signatures=signatures)
    assert not answers_text(servable)
    body = json.dumps({"model": "captions", "messages": said("hi")}).encode()
    with pytest.raises(RequestError, match="captions does not answer a text"):
        signature_request(read_text_request(body, is_chat=True), servable)


def test_limits_and_hosts(store, open_client):
    small = open_client(store, body_limit=100)
    answer = complete(small, "a" * 200)
    assert answer.status_code == 413
    assert "more than 100 bytes" in answer.json()["error"]["message"]
    answer = small.get(CHAT)
    assert answer.status_code == 400
    headers = {"host": "evil.example"}
    assert small.post(CHAT, json={}, headers=headers).status_code == 403
    full = open_client(store, queue_size=0)
    answer = complete(full, "a", stream=True)
    assert answer.status_code == 429
    assert answer.headers["retry-after"]
    assert answer.json()["error"]["type"] == "rate_limit_error"


def test_the_log_knows_the_model(store, open_client):
    records = []
    client = open_client(store, log=records.append)
    chat(client, "hi")
    chat(client, "hi", stream=True)
    chat(client, "hi", model="<x>")
    assert [record["model"] for record in records] == ["chat", "chat", ""]
    assert [record["status"] for record in records] == [200, 200, 404]


def test_the_client_of_openai(store):
    openai = pytest.importorskip("openai", reason="needs openai")
    server = Server(store)
    try:
        host, port = server.address
        client = openai.OpenAI(base_url=f"http://{host}:{port}/v1", api_key="-")
        assert [model.id for model in client.models.list()][2] == "chat"
        options = {"model": "chat", "messages": said("ho"), **DRAWS}
        answer = client.chat.completions.create(**options)
        assert answer.choices[0].message.content == "ho" + DRAWN
        chunks = client.chat.completions.create(**options, stream=True)
        parts = [chunk.choices[0].delta.content for chunk in chunks]
        assert "".join(filter(None, parts)) == "ho" + DRAWN
        found = client.completions.create(model="upper", prompt="ab")
        assert found.choices[0].text == "AB"
        assert found.usage.completion_tokens == 2
        with pytest.raises(openai.NotFoundError, match="x"):
            client.completions.create(model="x", prompt="ab")
        with pytest.raises(openai.BadRequestError, match="n is not"):
            client.chat.completions.create(**options, n=2)
    finally:
        server.stop()
