"""What shows nothing is blank: for every reader and in every graph."""

import json

import pytest
import tensorflow as tf

from kseq.data import (
    DialoguePreprocessor,
    DocumentPreprocessor,
    ParallelText,
    TextPreprocessor,
    WordPreprocessor,
    read_dialogues,
    read_documents,
    read_tagged_sentences,
)
from kseq.data.files.blank_text import is_blank
from kseq.data.running_text.text_documents import read_texts
from kseq.data.text.tokenized_pairs import are_usable

BLANK = {
    "no-break": "\u00a0",
    "ideographic": "\u3000",
    "zero width": "\u200b",
    "byte order mark": "\ufeff",
    "line separator": "\u2028",
    "mixed": " \u3000\t\u200b\u00ad\u2060 ",
    "ascii": " \x0b\x0c\x1c",
    "none": "",
}
NOT_BLANK = ["a", "\u3000a", "\u200bb\u00a0", "\u0301", "\u2800", "\0"]


@pytest.fixture(params=BLANK)
def blank(request):
    return BLANK[request.param]


def test_the_rule(blank):
    assert is_blank(blank) and is_blank(blank.encode())
    for text in NOT_BLANK:
        assert not is_blank(text) and not is_blank(text.encode())
    assert not is_blank(b"\xff")


def test_it_has_no_tokens(blank, tokenizer):
    [nothing, *others] = tokenizer.tokenize([blank, *NOT_BLANK]).to_list()
    assert nothing == []
    assert all(others)


@pytest.mark.parametrize(
    "preprocessor", [TextPreprocessor, WordPreprocessor, DocumentPreprocessor]
)
def test_its_answer_is_blank(blank, preprocessor, tokenizer):
    source = preprocessor(tokenizer)([blank, "a dog", "\u3000a"])
    assert source.blank.numpy().tolist() == [True, False, False]


def test_a_dialogue_of_blank_turns_is_blank(tokenizer):
    dialogues = [
        *([blank, blank] for blank in BLANK.values()),
        *([blank, "a dog"] for blank in BLANK.values()),
    ]
    for nested in (False, True):
        preprocessor = DialoguePreprocessor(tokenizer, nested=nested)
        source = preprocessor(dialogues)
        count = len(BLANK)
        expected = [True] * count + [False] * count
        assert source.blank.numpy().tolist() == expected
        alone = preprocessor([["a dog"]]).inputs["source_ids"][0]
        for both in source.inputs["source_ids"][count:]:
            assert tf.reduce_all(both[: len(alone)] == alone)


def test_check_and_training_leave_out_the_same_pairs(write):
    texts = [*NOT_BLANK, *BLANK.values(), "a"]
    lines = "\n".join(texts).encode() + b"\n"
    path = write("a.txt", lines)
    text = ParallelText(path, path)

    assert text.check().blank == len(BLANK)
    assert len(list(text.pairs())) == len(NOT_BLANK) + 1
    assert are_usable(texts, texts).numpy().tolist() == [
        not is_blank(text) for text in texts
    ]


def test_the_readers_count_it(blank, write, caplog):
    turns = [{"turns": ["Hi", blank, "Hello"]}]
    sentences = [
        {"words": ["a"], "tags": ["O"]},
        {"words": [blank or " "], "tags": ["O"]},
    ][: 1 + bool(blank.strip(" \t\n\v\f\r\x1c"))]
    documents = [{"label": "x", "text": text} for text in ("a", blank)]

    def table(records):
        lines = map(json.dumps, records)
        return write("table.jsonl", "\n".join(lines).encode())

    assert read_dialogues(table(turns)).contexts == [["Hi"]]
    if "\t" not in blank:
        assert read_tagged_sentences(table(sentences)).texts == ["a"]
    assert read_documents(table(documents)).texts == ["a"]
    assert read_texts(table(documents)) == ["a"]
