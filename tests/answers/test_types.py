"""Which source and which answer a task or an export has."""

from types import SimpleNamespace

import pytest

from kseq import answers, sources
from kseq.answers import types_of_export, types_of_task

TASKS = [
    ({}, sources.TEXT, answers.TEXT),
    ({"labels": ["a"]}, sources.DOCUMENTS, answers.LABELS),
    ({"tags": ["a"]}, sources.WORDS, answers.TAGS),
    ({"input": "turns", "answers": 3}, sources.TURNS, answers.STORED_ANSWERS),
    (
        {"preprocessor": {"class": "VectorPreprocessor"}},
        sources.VECTORS,
        answers.VECTORS,
    ),
    ({"input": "audio", "labels": ["a"]}, sources.AUDIO, answers.LABELS),
    ({"input": "image", "labels": ["a"]}, sources.IMAGE, answers.LABELS),
    ({"input": ["hostile"]}, sources.TEXT, answers.TEXT),
    ({"input": "frames", "preprocessor": 3}, sources.FRAMES, answers.TEXT),
]


@pytest.mark.parametrize(("task", "source", "answer"), TASKS)
def test_of_a_task(task, source, answer):
    assert types_of_task(task) == (source, answer)


@pytest.mark.parametrize(("task", "source", "answer"), TASKS)
def test_of_an_export(task, source, answer):
    served = SimpleNamespace(inputs=[source.name], outputs=answer.outputs)
    signatures = dict.fromkeys(("serving_default", answer.signature), served)
    assert types_of_export(signatures) == (source, answer)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["text"], ["text"]),
        (["line"], answers.TEXT.outputs),
        (["text", "other"], answers.TEXT.outputs),
        (["text"], answers.VECTORS.outputs),
        (["audio"], answers.TAGS.outputs),
    ],
)
def test_an_export_of_others(inputs, outputs):
    served = SimpleNamespace(inputs=inputs, outputs=outputs)
    assert types_of_export({"serving_default": served}) is None


def test_every_pair_has_texts_for_its_signatures():
    for answer in answers.ANSWERS:
        for source in sources.SOURCES:
            texts = answer.signatures(source)
            assert "serving_default" in texts
            assert all(text.format("x") for text in texts.values())
