import itertools

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kseq.data import split_paragraphs
from kseq.data.text import sentences
from kseq.data.text.sentences import break_lines

CASES = {
    "One.  Two?\n\n Three": ["One.", "Two?", "Three"],
    "": [],
    "  \n\u3000": [],
    "Über 3.5 Mr. Smith ging. Ja!  ": ["Über 3.5 Mr. Smith ging.", "Ja!"],
    "\tDas ist. \r\nUnd das": ["Das ist.", "Und das"],
    "你好。今天很好。Really? Yes.": ["你好。", "今天很好。", "Really?", "Yes."],
    'He said "Hi." Then (so.) left.': ['He said "Hi."', "Then (so.)", "left."],
    "他说“好。”走了。": ["他说“好。”", "走了。"],
    "\u00a0x.\u00a0Y.\u3000": ["x.", "Y."],
    "a.b c. D": ["a.b c.", "D"],
}


def test_sentences_of_texts():
    found = split_paragraphs(tf.constant(list(CASES)))
    sentences = [each.decode() for each in found.sentences.numpy()]
    assert sentences == [*itertools.chain(*CASES.values())]
    texts = [place for place, each in enumerate(CASES.values()) for _ in each]
    assert found.text.numpy().tolist() == texts


@settings(max_examples=20, deadline=None)  # of many texts each
@given(
    st.lists(
        st.text(
            st.sampled_from(
                list("aZä9.!?。…\"')” \u00a0\u3000\u2028\n\r\t\0<b")
            ),
            max_size=25,
        ),
        max_size=12,
    )
)
def test_what_is_joined_is_the_text(texts):
    found = split_paragraphs(tf.constant(texts, tf.string))
    joined = found.joined(found.sentences).numpy()
    # A space may follow a full stop that none followed.
    assert [each.decode().replace(" ", "") for each in joined] == [
        text.replace(" ", "") for text in texts
    ]
    for sentence in found.sentences.numpy():
        assert sentence.decode() == sentence.decode().strip("\u3000\u00a0 \n")


def test_answers_take_the_places_of_sentences():
    found = split_paragraphs(tf.constant([" One.  Two?\n\n(Three)\t", "x"]))
    assert found.joined(["1", "2", "3", "4"]).numpy().tolist() == [
        b" 1  2\n\n3\t",
        b"4",
    ]


@pytest.mark.parametrize(
    ("answers", "joined"),
    [
        (["Hello.", "Go!"], "Hello. Go!"),
        (['"Hello."', "Go!"], '"Hello." Go!'),
        (["你好。", "走!"], "你好。走!"),
        (["", "Go!"], "Go!"),
        (["Hello.", ""], "Hello."),
    ],
)
def test_a_space_is_added_where_the_answers_need_one(answers, joined):
    found = split_paragraphs(tf.constant(["你好。走。"]))
    assert found.joined(answers).numpy()[0].decode() == joined


def test_long_lines_are_cut_in_parts_with_the_same_sentences(monkeypatch):
    texts = [*CASES, "", "Über Zeit. Und\u00a0so? Ja!  " * 30, "x" * 90]

    def found():
        paragraphs = split_paragraphs(tf.constant(texts))
        lines = break_lines(tf.constant(texts)).to_list()
        return [each.numpy().tolist() for each in paragraphs], lines

    monkeypatch.setattr(sentences, "_PARTS", ())
    expected = found()
    monkeypatch.setattr(sentences, "_PARTS", (64, 8))
    assert found() == expected


@pytest.mark.parametrize("function", [break_lines, split_paragraphs])
def test_a_long_line_is_not_copied_for_each_sentence(monkeypatch, function):
    """A line of 1 MB would need 30 GB."""
    text = "The baker saw smoke. " * 5000
    copied, gather = [], tf.gather

    def recorded(values, *arguments, **options):
        found = gather(values, *arguments, **options)
        if found.dtype == tf.string:
            copied.append(int(tf.reduce_sum(tf.strings.length(found))))
        return found

    monkeypatch.setattr(sentences.tf, "gather", recorded)
    function(tf.constant([text]))
    assert max(copied) < 100 * len(text)
