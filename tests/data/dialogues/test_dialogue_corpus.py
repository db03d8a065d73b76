from collections import Counter, defaultdict

import pytest

from kseq.data import DataError, read_dialogue_corpus
from kseq.data.dialogues.small_talk import SIZES, small_talk
from kseq.user_error import UserError


def text_of(numbers, turns=3):
    return "\n\n".join(
        "\n".join(f"{number} {turn}" for turn in range(turns))
        for number in numbers
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(text_of(range(40)))
    return path


def test_whole_dialogues_are_held_out(file, caplog):
    corpus = read_dialogue_corpus(file)
    assert len(corpus.train.answers) == 2 * 36
    assert len(corpus.validation.answers) == 2 * 4
    assert corpus.test is corpus.validation
    firsts = [
        {context[0] for context in part.contexts}
        for part in (corpus.train, corpus.validation)
    ]
    assert not firsts[0] & firsts[1]
    assert corpus.facts == (
        f"Training dialogues: 36, 72 answers ({file})",
        "Validation dialogues: 4, 8 answers (held out of training)",
    )
    assert read_dialogue_corpus(file) == corpus  # by their text


def test_equal_dialogues_stay_together(file):
    file.write_text(text_of([*range(10)] * 4))
    corpus = read_dialogue_corpus(file)
    assert not {*corpus.train.answers} & {*corpus.validation.answers}
    assert "Duplicate dialogues: 30" in corpus.facts


def test_what_is_in_both_files_is_said(file, tmp_path, caplog):
    other = tmp_path / "b.txt"
    other.write_text(text_of([3, 99]) + "\n\n" + "x")
    corpus = read_dialogue_corpus(file, other, max_turns=1)
    assert corpus.train.contexts[1] == ["0 1"]
    alone, both = corpus.problems
    assert "1 of 3 dialogues are left out" in alone
    assert both.startswith("1 of 2 validation dialogues are also in training")
    assert both in caplog.text


def test_what_cannot_be_split(file, tmp_path):
    with pytest.raises(DataError, match="validation needs train"):
        read_dialogue_corpus(None, file)
    with pytest.raises(DataError, match="an empty one"):
        read_dialogue_corpus(file, "")
    with pytest.raises(UserError, match="max_turns"):
        read_dialogue_corpus(file, max_turns=0)
    file.write_text(text_of([1, 1]))
    with pytest.raises(DataError, match="there is only one"):
        read_dialogue_corpus(file)


@pytest.fixture(scope="module")
def corpus():
    return read_dialogue_corpus()


def test_the_question_alone_does_not_have_the_answer(corpus):
    answers = defaultdict(Counter)
    train, test = corpus.train, corpus.test
    for context, answer in zip(train.contexts, train.answers, strict=True):
        answers[context[-1]][answer] += 1
    guesses = {
        question: found.most_common(1)[0][0]
        for question, found in answers.items()
    }
    right = sum(
        guesses.get(context[-1]) == answer
        for context, answer in zip(test.contexts, test.answers, strict=True)
    )
    assert right < 0.1 * len(test.answers)


def test_one_turn_has_the_fact_and_others_look_like_it(corpus):
    rivals, places = 0, Counter()
    for context, answer, place, fact in zip(*corpus.train, strict=True):
        assert f" {fact}" in answer
        name = next(word for word in answer.split() if word.istitle())
        words = [turn.replace(".", "").split() for turn in context]
        assert [n for n, turn in enumerate(words) if fact in turn] == [place]
        assert name in words[place]
        assert fact not in words[-1]
        places[len(context), place] += 1
        rivals += sum(fact in other for other in corpus.train.facts[:3])
    for turns in (3, 4, 5):
        found = [places[turns, place] for place in range(turns - 1)]
        assert min(found) > 0.9 * max(found)  # all positions are as likely


def test_no_context_is_in_two_splits(corpus):
    contexts = [
        "\n".join(context)
        for split in (corpus.train, corpus.validation, corpus.test)
        for context in split.contexts
    ]
    assert len({*contexts}) == len(contexts) == sum(SIZES.values())
    assert small_talk("test") == corpus.test
    # A retriever has seen every answer.
    assert {*corpus.test.answers} <= {*corpus.train.answers}
