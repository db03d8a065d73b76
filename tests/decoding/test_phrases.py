"""Phrases that answers must and must not contain, against all answers."""

import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START, UNK
from kseq.decoding import BeamSearch, Phrases
from kseq.decoding.phrases import (
    completions,
    different_phrases,
    in_turn,
    is_letter,
    of_phrases,
    phrase_memory,
    progress,
)
from tests.slow import slow

SURFACES = [b"", b"", b"", b"", b" a", b"b", b" c", b"."]
LIMIT = 4
REQUIRED = [[[5, 4], [PAD, PAD]], [[7, PAD], [4, PAD]], [[PAD] * 2] * 2]
FORBIDDEN = [["c", ""], ["ab", "a c"], ["", ""]]


@pytest.fixture
def phrases():
    """Of the three items of `source_ids`; the last one is free."""
    required = tf.constant(REQUIRED, tf.int64)
    return Phrases(required, tf.constant(FORBIDDEN), SURFACES)


def contains(answer, phrase):
    """As whole words."""
    phrase = [token for token in phrase if token != PAD]
    return any(
        answer[i : i + len(phrase)] == phrase
        and begins_words(answer[:i], phrase)
        and begins_words(phrase, answer[i + len(phrase) :])
        for i in range(len(answer) + 1)
    )


def begins_words(before, after):
    return not re.search(r"\w\|\w", f"{text_of(before)}|{text_of(after)}")


def text_of(tokens):
    return b"".join(
        b" ? " if token == UNK else SURFACES[token] for token in tokens
    ).decode()


def has_word(answer, word):
    """An answer that its limit cuts may go on with the same word."""
    text = text_of(answer)
    text += "" if answer[-1:] == [END] else "x"
    return bool(word) and re.search(rf"(?<!\w){word}(?!\w)", text)


def fits(answer, item):
    needed = all(contains(answer, phrase) for phrase in REQUIRED[item])
    return needed and not any(has_word(answer, w) for w in FORBIDDEN[item])


def all_answers():
    tokens = [1, 4, 5, 6, 7]
    for length in range(LIMIT):
        for answer in itertools.product(tokens, repeat=length):
            yield [*answer, END]
    yield from map(list, itertools.product(tokens, repeat=LIMIT))


def log_probs_of(model, source_ids, answers):
    ids = np.zeros((len(answers), LIMIT), int)
    for row, answer in zip(ids, answers, strict=True):
        row[: len(answer)] = answer
    start = np.full((len(ids), 1), START)
    inputs = {
        "source_ids": tf.repeat(source_ids, len(ids), axis=0),
        "target_ids": tf.constant(np.concatenate([start, ids[:, :-1]], 1)),
    }
    found = tf.nn.log_softmax(model(inputs)).numpy()
    found = np.take_along_axis(found, ids[:, :, None], axis=2)[:, :, 0]
    return np.where(ids != PAD, found, 0).sum(axis=1)


def test_wide_beam_is_exhaustive_search(
    make_model, source_ids, searched, phrases
):
    model = make_model(vocab_size=8)
    best = searched(
        BeamSearch(400, 0.0),
        model,
        source_ids,
        [LIMIT] * 3,
        n_best=3,
        phrases=phrases,
    )

    for item in range(3):
        answers = [each for each in all_answers() if fits(each, item)]
        scores = log_probs_of(model, source_ids[item : item + 1], answers)
        order = np.argsort(-scores)[:3]
        np.testing.assert_allclose(best.scores[item], scores[order], atol=1e-4)
        found = [
            [token for token in ids if token != PAD]
            for ids in best.ids[item].numpy().tolist()
        ]
        assert found == [answers[place] for place in order]


def test_one_way_of_a_phrase_is_enough(
    make_model, source_ids, searched, phrases
):
    model = make_model(vocab_size=8, bias={4: -9.0})
    required = tf.constant([[[[4, 5], [5, 5]], [[4, PAD], [6, 7]]]] * 3)
    best = searched(
        BeamSearch(400, 0.0),
        model,
        source_ids,
        [LIMIT] * 3,
        phrases=phrases._replace(
            required=required, forbidden=tf.fill((3, 1), "")
        ),
    )
    answers = [
        answer
        for answer in all_answers()
        if all(
            any(contains(answer, way) for way in ways)
            for ways in required[0].numpy().tolist()
        )
    ]
    for item in range(3):
        scores = log_probs_of(model, source_ids[item : item + 1], answers)
        np.testing.assert_allclose(
            best.scores[item, 0], scores.max(), atol=1e-4
        )


@pytest.mark.parametrize("beam_size", [2, slow(5)])
def test_a_narrow_beam_keeps_to_all_phrases(
    make_model, source_ids, searched, phrases, beam_size
):
    """However unlikely they are, alone and in a batch."""
    model = make_model(vocab_size=8, bias={5: -20.0, 7: -20.0, 6: 5.0})
    search, limits = BeamSearch(beam_size), [6, 5, 6]
    best = searched(search, model, source_ids, limits, phrases=phrases)
    free = searched(search, model, source_ids, limits)

    for item in range(3):
        answer = best.ids[item, 0, : best.lengths[item, 0]].numpy().tolist()
        assert np.isfinite(best.scores[item, 0])
        assert fits(answer, item)
    length = int(free.lengths[2, 0])
    np.testing.assert_array_equal(
        best.ids[2, 0, :length], free.ids[2, 0, :length]
    )
    own = Phrases(phrases.required[:1], phrases.forbidden[:1], SURFACES)
    alone = searched(search, model, source_ids[:1], limits[:1], phrases=own)
    length = int(alone.lengths[0, 0])
    np.testing.assert_array_equal(
        alone.ids[0, 0, :length], best.ids[0, 0, :length]
    )


def test_no_phrases_change_nothing(make_model, source_ids, searched):
    model, limits = make_model(vocab_size=8), [6, 2, 9]
    none = Phrases(tf.zeros((3, 0, 0), tf.int64), tf.fill((3, 1), ""), SURFACES)
    plain = searched(BeamSearch(), model, source_ids, limits, n_best=3)
    found = searched(
        BeamSearch(), model, source_ids, limits, n_best=3, phrases=none
    )
    np.testing.assert_array_equal(found.ids, plain.ids)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-5)


def test_which_tokens_complete_a_forbidden_phrase(seed):
    """Wherever its words begin, of two items with phrases of their own."""
    random = np.random.default_rng(seed)
    texts = [" a", "b", " ab", "-", "(a", "b.", "“", "日", "本 a", "ü", "b-a"]
    texts += [" 日本a", "b-a.", "a日"]
    surfaces = [b"", b"", b"", b"", *(text.encode() for text in texts)]
    shown = ["", " ? ", "", "", *texts]
    phrases = [
        "ab",
        "a",
        "b-a",
        "日本",
        "a日",
        "-a",
        "b ab",
        "ab.",
        "ü",
        "本 a",
    ]
    forbidden = random.choice([*phrases, ""], (2, 4))
    size = len(surfaces)
    ids = random.choice([UNK, *range(4, size)], (40, random.integers(0, 5)))
    different, numbers = different_phrases(tf.constant(forbidden))
    memory = phrase_memory(tf.zeros((2, 0, 1, 0), tf.int64), numbers, different)
    found = completions(different, surfaces)
    met = tf.zeros((40,), tf.int64)
    limit = of_phrases(met, memory, found, surfaces)
    is_free = np.isfinite(limit(tf.zeros((40, size)), tf.constant(ids)))

    for row, token in itertools.product(range(40), range(size)):
        before = "".join(shown[each] for each in ids[row])
        after = before + shown[token] + "." * (token == END)
        completed = [
            phrase
            for phrase in filter(None, forbidden[row // 20])
            for place in range(len(after))
            if after.startswith(phrase, place)
            and is_completed(before, after, place, place + len(phrase))
        ]
        assert is_free[row, token] == (not completed), (before, completed)


def is_completed(before, after, start, end):
    """Whether these are whole words, which was not known before."""
    edges = [
        start > 0 and is_letter(after[start - 1]) * is_letter(after[start])
    ]
    if is_letter(after[end - 1]):
        edges.append(end == len(after) or is_letter(after[end]))
        return end >= len(before) and not any(edges)
    return end > len(before) and not any(edges)


def test_a_block_list_takes_memory_once():
    """Not for each item, nor for each byte of a phrase."""
    words = ["".join(word) for word in itertools.product("bcdefgh", repeat=2)]
    numbers = []
    for items in (1, 30):
        different, _ = different_phrases(tf.constant([words] * items))
        numbers.append(len(completions(different, SURFACES).phrases))
    assert numbers == [len(words)] * 2


def test_words_of_scripts_without_spaces(make_model, source_ids, searched):
    """They have no ends: a forbidden one is nowhere in an answer."""
    surfaces = [*SURFACES[:4], "日".encode(), "本".encode(), b" c", b"."]
    model = make_model(vocab_size=8, bias={4: 9.0, 5: 9.0})
    phrases = Phrases(
        tf.zeros((3, 0, 0), tf.int64), tf.fill((3, 1), "日本"), surfaces
    )
    best = searched(
        BeamSearch(3), model, source_ids, [9] * 3, n_best=3, phrases=phrases
    )
    for ids in best.ids.numpy().reshape(9, -1).tolist():
        assert not contains(ids, [4, 5])


@pytest.mark.parametrize("token", [" 日本", "大日本", "日本人", "大日本人"])
def test_forbidden_phrases_within_a_token(token):
    different, numbers = different_phrases(tf.constant([["日本"]]))
    surfaces = [*SURFACES, token.encode(), "日".encode()]
    memory = phrase_memory(tf.zeros((1, 0, 1, 0), tf.int64), numbers, different)
    found = completions(different, surfaces)
    met = tf.zeros((1,), tf.int64)
    limit = of_phrases(met, memory, found, surfaces)
    log_probs = limit(tf.zeros((1, 10)), tf.constant([[4, 5]]))
    assert np.isneginf(log_probs).tolist()[0] == [False] * 8 + [True, False]


@pytest.mark.parametrize(
    ("required", "end"), [(b" a", b"b"), ("日".encode(), b" a")]
)
def test_a_phrase_that_the_model_continues(
    make_model, source_ids, searched, required, end
):
    """It ends with a word; not in a script without spaces."""
    surfaces = [*SURFACES[:4], required, b"b", "ü".encode(), b".", end]
    model = make_model(vocab_size=9, bias={5: 40.0, 6: 40.0, 8: 20.0})
    phrases = Phrases(
        tf.fill((3, 1, 1), tf.constant(4, tf.int64)),
        tf.fill((3, 1), ""),
        surfaces,
    )
    best = searched(BeamSearch(2), model, source_ids, [6] * 3, phrases=phrases)
    for item in range(3):
        ids = best.ids[item, 0, : best.lengths[item, 0]].numpy().tolist()
        text = b"".join(surfaces[token] for token in ids).decode()
        assert np.isfinite(best.scores[item, 0])
        assert re.search(r"\ba\b|日", text)
    is_word = required == b" a"
    start = tf.constant([[4], [4]], tf.int64)
    ids = tf.concat([start, [[5], [7]]], axis=1)
    met, _ = progress(tf.constant([[[[4, 0]]]], tf.int64), ids, surfaces)
    assert met.numpy().tolist() == [0 if is_word else 1, 1]


@pytest.mark.parametrize(
    ("letters", "others"),
    [
        ("aZ9éßдعह\u093f\u0301\u200c\u00ad한", " .,-_'\u2019“»…—\u00a0+$€😀\n"),
        ("\ufffd", "日々本あアーｱกົကខ\u0e34𠀀"),
    ],
)
def test_where_words_go_on(letters, others):
    assert all(map(is_letter, letters))
    assert not any(map(is_letter, others))


def test_progress_is_that_of_plain_python(seed):
    random = np.random.default_rng(seed)
    required = np.zeros((4, 3, 2, 4), int)
    for phrase in required.reshape(24, 4):
        phrase[: random.integers(0, 4)] = random.integers(4, 6)
        phrase[1:] *= random.integers(1, 2, 3)
        size = random.integers(0, 4)
        phrase[:] = 0
        phrase[:size] = random.integers(4, 6, size)
    required[0] *= 0
    required[:, 0, 1] = required[:, 0, 0]  # one way
    ids = random.integers(4, 6, (8, 5))
    met, following = progress(tf.constant(required), tf.constant(ids), SURFACES)

    for row in range(8):
        answer, total, begun = ids[row].tolist(), 0, [0]
        for number, phrase in enumerate(required[row // 2].tolist()):
            ways = [[token for token in way if token] for way in phrase]
            if any(contains(answer, tokens) for tokens in ways):
                total += max(map(len, ways))
                assert not np.any(following[row, 2 * number :][:2])
                continue
            for way, tokens in enumerate(ways):
                most = max(
                    k
                    for k in range(len(tokens))
                    if answer[len(answer) - k :] == tokens[:k]
                    and (
                        begins_words(answer[: len(answer) - k], tokens) or not k
                    )
                )
                begun.append(most)
                assert following[row, 2 * number + way] == tokens[most]
        assert met[row] == total + max(begun)


def test_the_numbers_of_met_tokens_take_turns():
    log_probs = tf.constant([[-1.0, -2.0, -3.0, -4.0, -np.inf]])
    order = in_turn(log_probs, tf.constant([[0, 0, 1, 0, 2]], tf.int64))
    assert order.numpy().tolist() == [[2, 0, 1, 3, 4]]


def test_phrases_need_a_beam(make_model, source_ids, searched, phrases):
    with pytest.raises(ValueError, match="beam of two or more"):
        searched(
            BeamSearch(1), make_model(), source_ids, [3] * 3, phrases=phrases
        )
