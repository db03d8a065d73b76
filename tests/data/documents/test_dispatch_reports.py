import importlib
import itertools
import re
from collections import Counter

import pytest
import tensorflow_text

from kseq.data.documents.dispatch_reports import SIZES, dispatch_reports

# By this name, the package has the function.
MODULE = importlib.import_module("kseq.data.documents.dispatch_reports")
LABELS = ("ambulance", "fire", "flood", "police")
OF_LABEL = MODULE._DECISIVE
NEUTRAL = set(MODULE._NEUTRAL)
DECISIVE = {word for words in OF_LABEL.values() for word in words}


def words_of(text):
    return re.findall("[a-z]+", text.lower())


def sentences_of(text):
    return re.findall(r"[^.]+\.", text)


@pytest.fixture(scope="module")
def train():
    return dispatch_reports("train")


def test_splits_have_their_sizes_and_share_no_report(train):
    texts = {
        "train": train.texts,
        **{
            split: dispatch_reports(split).texts
            for split in ("validation", "test")
        },
    }

    assert {split: len(texts[split]) for split in texts} == SIZES
    assert len(set().union(*texts.values())) == sum(SIZES.values())


def test_no_report_is_repeated_when_there_are_few(monkeypatch):
    monkeypatch.setattr(MODULE, "_FEWEST", 1)
    monkeypatch.setattr(MODULE, "_MOST", 1)
    monkeypatch.setattr(MODULE, "_TEMPLATES", ("The {thing}.",))
    monkeypatch.setattr(
        MODULE, "SIZES", {"train": 30, "test": len(DECISIVE) - 30}
    )

    texts = dispatch_reports("train").texts + dispatch_reports("test").texts
    assert sorted(texts) == sorted(f"The {word}." for word in DECISIVE)


def test_one_word_of_one_sentence_decides(train):
    for text, label, (index, word) in zip(
        train.texts, train.labels, train.evidence, strict=True
    ):
        decisive = [found for found in words_of(text) if found in DECISIVE]
        assert decisive == [word]
        assert word in OF_LABEL[label]
        assert word in words_of(sentences_of(text)[index])[1:]


def test_decisive_words_are_many_and_part_of_no_other_word(train):
    assert tuple(OF_LABEL) == LABELS
    assert all(len(words) >= 12 for words in OF_LABEL.values())
    assert len(DECISIVE) == sum(map(len, OF_LABEL.values()))
    words = {word for text in train.texts for word in words_of(text)}
    assert words >= DECISIVE
    assert not [
        (word, other)
        for word, other in itertools.product(DECISIVE, words)
        if word in other and word != other
    ]


def test_nothing_but_the_decisive_word_depends_on_the_label(train):
    counts = {label: Counter() for label in LABELS}
    of_label = Counter(train.labels)
    for text, label, (index, word) in zip(
        train.texts, train.labels, train.evidence, strict=True
    ):
        sentences = sentences_of(text)
        decisive = words_of(sentences[index])
        features = {("word", other) for other in words_of(text)}
        features |= {("beside it", other) for other in decisive}
        features -= {("word", word), ("beside it", word)}
        features |= {("place", index), ("number", len(sentences))}
        counts[label].update(features)

    total = sum(counts.values(), Counter())
    assert total["place", 0] and total["place", 11]
    assert {n for n in range(20) if total["number", n]} == set(range(4, 13))
    for feature, count in total.items():
        share = count / len(train.texts)
        for label, size in of_label.items():
            deviation = (size * share * (1 - share)) ** 0.5
            excess = abs(counts[label][feature] - size * share)
            assert excess <= 5 * deviation + 1, (feature, label)


def test_the_decisive_sentence_is_made_as_the_others(train):
    made = {True: Counter(), False: Counter()}
    for text, (decisive, word) in zip(train.texts, train.evidence, strict=True):
        for index, sentence in enumerate(sentences_of(text)):
            words = set(words_of(sentence)) - NEUTRAL - {word}
            made[index == decisive].update({*words, "sentence"})

    size = made[True]["sentence"]
    assert size == len(train.texts)
    for word, count in made[False].items():
        share = count / made[False]["sentence"]
        deviation = (size * share * (1 - share)) ** 0.5
        assert abs(made[True][word] - size * share) <= 5 * deviation, word


def test_each_label_and_word_is_as_frequent_as_the_others(train):
    words = Counter(word for _, word in train.evidence)

    for label, count in Counter(train.labels).items():
        expected = count / len(OF_LABEL[label])
        assert 0.9 < count / (len(train.labels) / len(LABELS)) < 1.1
        assert all(
            0.6 < words[word] / expected < 1.4 for word in OF_LABEL[label]
        )


def test_the_decisive_sentence_may_be_any(train):
    shares = Counter(
        int(10 * index / len(sentences_of(text)))
        for text, (index, _) in zip(train.texts, train.evidence, strict=True)
    )
    assert set(shares) == set(range(10))


def test_every_template_can_decide():
    for template in MODULE._TEMPLATES:
        assert template.count("{thing}") == 1
        assert not template.startswith("{thing}")


def test_sentences_are_plain_and_a_breaker_finds_them(train):
    texts = train.texts[:500]
    for text in texts:
        assert re.fullmatch(r"([A-Z][a-z, ]*\.( |$))+", text), text
        assert not text.endswith(" ") and "  " not in text

    broken = tensorflow_text.StateBasedSentenceBreaker().break_sentences(texts)
    for text, sentences in zip(texts, broken.to_list(), strict=True):
        assert [sentence.decode() for sentence in sentences] == [
            sentence.strip() for sentence in sentences_of(text)
        ]


def test_the_seed_decides():
    # Which report one seed gives in any process, the docstring shows.
    # Of the first split, before which nothing has to be drawn.
    assert dispatch_reports("train", size=50, seed=7) == dispatch_reports(
        "train", 50, seed=7
    )
    assert dispatch_reports("train", size=50, seed=7) != dispatch_reports(
        "train", 50, seed=8
    )


def test_a_smaller_size_is_a_beginning(train):
    few = dispatch_reports("train", size=20)

    assert few.texts == train.texts[:20]
    assert few.labels == train.labels[:20]
    assert few.evidence == train.evidence[:20]
    assert not few.in_lines


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="Received: split='dev'"):
        dispatch_reports("dev")
    for size in (0, 1001):
        with pytest.raises(ValueError, match=f"Received: size={size}"):
            dispatch_reports("test", size=size)
