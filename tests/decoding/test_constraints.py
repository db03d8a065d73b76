"""Constraints on the answers of a search."""

import functools
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START, UNK
from kseq.data import Tokenizer
from kseq.decoding import (
    BeamSearch,
    ForbiddenTokens,
    ForcedPrefix,
    GreedySearch,
    MinLength,
    NoRepeatedNgrams,
    RepetitionPenalty,
    Sampling,
)
from kseq.decoding.constraints import StopStrings, stop_pattern
from tests.slow import others_slow, slow

VOCAB, LIMITS = 7, [9, 4, 12]
SEARCHES = [GreedySearch, BeamSearch, Sampling]
NAMES = ["greedy", "beam", "sampling"]
one_search = pytest.mark.parametrize(
    "search", others_slow(SEARCHES, [BeamSearch]), ids=NAMES
)
every_search = pytest.mark.parametrize("search", SEARCHES, ids=NAMES)


def answers_of(best):
    """The tokens of each best answer."""
    pairs = zip(best.ids[:, 0].numpy(), best.lengths[:, 0], strict=True)
    return [ids[:length].tolist() for ids, length in pairs]


def ngrams_of(ids, n):
    return [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]


@functools.cache
def traced_once(constraint):
    """In a graph of any size."""
    return tf.function(
        constraint,
        input_signature=[
            tf.TensorSpec((None, None), tf.float32),
            tf.TensorSpec((None, None), tf.int32),
        ],
        autograph=False,
    )


@pytest.fixture
def log_probs(seed):
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.ones(VOCAB), size=5)
    return np.log(rows).astype("float32")


@pytest.mark.parametrize("length", [0, 1, 2, 8])
@pytest.mark.parametrize(
    "constraint",
    [
        ForbiddenTokens([4, 6]),
        ForbiddenTokens([]),
        NoRepeatedNgrams(1),
        NoRepeatedNgrams(2),
        NoRepeatedNgrams(3),
        NoRepeatedNgrams(2**31 - 1),
        RepetitionPenalty(1.5),
        MinLength(3),
    ],
    ids=str,
)
def test_same_as_in_plain_python(log_probs, seed, constraint, length):
    random = np.random.default_rng(seed)
    ids = random.integers(4, VOCAB, size=(5, length)).astype("int32")
    expected = log_probs.copy()
    for row, so_far in zip(expected, ids.tolist(), strict=True):
        for token in range(VOCAB):
            match constraint:
                case ForbiddenTokens(ids=forbidden):
                    excluded = token in forbidden
                case NoRepeatedNgrams(n=n):
                    ngrams = ngrams_of([*so_far, token], min(n, 99))
                    excluded = len(set(ngrams)) < len(ngrams)
                    excluded &= bool(ngrams) and ngrams[-1] in ngrams[:-1]
                case MinLength(length=least):
                    excluded = token == END and length + 1 < least
                case RepetitionPenalty(penalty=penalty):
                    excluded = False
                    row[token] *= penalty if token in so_far else 1
            if excluded:
                row[token] = -math.inf

    function = traced_once(constraint)
    found = function(log_probs, ids)

    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert function(log_probs[:0], ids[:0]).shape == (0, VOCAB)


@every_search
def test_forbidden_tokens(make_model, source_ids, searched, scores_of, search):
    model = make_model(bias={5: 3.0, END: -2.0})
    search = search(constraints=[ForbiddenTokens([5])])

    best = searched(search, model, source_ids, LIMITS)

    assert not (best.ids.numpy() == 5).any()
    np.testing.assert_allclose(
        best.scores, scores_of(model, best.ids), atol=1e-4
    )


@every_search
@pytest.mark.parametrize("n", [slow(1), 2, slow(3)])
def test_no_repeated_ngrams(
    make_model, source_ids, searched, scores_of, search, n
):
    """With n = 1 every token is used up, and the answer has to end."""
    model = make_model(bias={END: -9.0, 4: 3.0})
    search = search(constraints=[NoRepeatedNgrams(n)])

    best = searched(search, model, source_ids, [20, 4, 20])

    for ids in answers_of(best):
        ngrams = ngrams_of(ids, n)
        assert len(set(ngrams)) == len(ngrams)
    np.testing.assert_allclose(
        best.scores, scores_of(model, best.ids), atol=1e-4
    )


@every_search
def test_least_length(make_model, source_ids, searched, scores_of, search):
    """The length limit precedes it."""
    model = make_model(bias={END: 60.0})
    search = search(constraints=[MinLength(6)])

    best = searched(search, model, source_ids, LIMITS)

    np.testing.assert_array_equal(best.lengths, [[6], [4], [6]])
    ids = best.ids[:, 0].numpy()
    assert (ids[:, :5] != END).all()
    assert ids[0, 5] == ids[2, 5] == END
    np.testing.assert_allclose(
        best.scores, scores_of(model, best.ids), atol=1e-4
    )


@pytest.fixture
def repeating_model(make_model):
    """Token 4 at every step, but not with certainty; it never ends."""
    model = make_model(bias={END: -60.0, 4: 5.0})
    model.output *= 0.05
    return model


@every_search
def test_repetition_penalty(repeating_model, source_ids, searched, search):
    search = search(constraints=[RepetitionPenalty(1000.0)])

    best = searched(search, repeating_model, source_ids, [4, 4, 4])

    assert all(len(set(ids)) == 4 for ids in answers_of(best))


def test_score_with_a_repetition_penalty(repeating_model, source_ids, searched):
    """The penalty is in the score."""

    def scores(length, **kwargs):
        search = GreedySearch(length_penalty=0.0, **kwargs)
        limits = [length] * 3
        best = searched(search, repeating_model, source_ids, limits)
        assert answers_of(best) == [[4] * length] * 3
        return best.scores

    penalized = scores(2, constraints=[RepetitionPenalty(1.2)])

    expected = scores(1) + 1.2 * (scores(2) - scores(1))
    np.testing.assert_allclose(penalized, expected, atol=1e-5)


@every_search
def test_a_row_without_a_possible_token_ends(
    make_model, source_ids, searched, scores_of, search
):
    model = make_model()
    constraints = [ForbiddenTokens([1, 4, 5, 6]), MinLength(5)]

    best = searched(search(constraints=constraints), model, source_ids, LIMITS)

    assert answers_of(best) == [[END]] * 3
    np.testing.assert_allclose(
        best.scores, scores_of(model, best.ids), atol=1e-4
    )


@every_search
def test_a_function_of_ones_own(make_model, source_ids, searched, search):
    def rises(log_probs, ids):
        last = ids[:, -1:] if ids.shape[1] != 0 else ids
        last = tf.reduce_max(tf.pad(last, [[0, 0], [0, 1]]), 1, keepdims=True)
        vocabulary = tf.range(tf.shape(log_probs)[-1])
        is_fine = (vocabulary > last) | (vocabulary == END)
        return tf.where(is_fine, log_probs, -math.inf)

    model = make_model(bias={END: -9.0})
    best = searched(search(constraints=[rises]), model, source_ids, LIMITS)

    for *ids, _ in answers_of(best):
        assert ids == sorted(set(ids))
    assert search(constraints=[rises]).get_config()["constraints"] == ["rises"]


@pytest.fixture
def traced_with_prefix():
    """A function: a search in a graph that takes prefixes."""

    def traced_with_prefix(search, model, **kwargs):
        ids = tf.TensorSpec((None, None), tf.int32)
        return tf.function(
            lambda source_ids, max_lengths, prefix: search(
                model,
                {"source_ids": source_ids},
                max_lengths,
                prefix=prefix,
                **kwargs,
            ),
            input_signature=[ids, tf.TensorSpec((None,), tf.int32), ids],
            autograph=False,
        )

    return traced_with_prefix


@pytest.mark.parametrize("length_penalty", [slow(0.0), 1.0])
def test_forced_prefix_is_exhaustive_search_below_it(
    make_model, source_ids, searched, scores_of, length_penalty
):
    """Of all answers, those that begin with the item's own prefix."""
    model, limits, others = make_model(), [4, 3, 4], [1, 4, 5, 6]
    prefixes = [[4, 5], [6, PAD], [PAD, PAD]]
    n_best = 5

    best = searched(
        BeamSearch(500, length_penalty),
        model,
        source_ids,
        limits,
        n_best=n_best,
        prefix=tf.constant(prefixes),
    )

    for i, (limit, prefix) in enumerate(zip(limits, prefixes, strict=True)):
        prefix = [token for token in prefix if token != PAD]
        answers = [
            [*tokens, END] + [PAD] * (limit - length - 1)
            for length in range(limit)
            for tokens in itertools.product(others, repeat=length)
        ]
        answers += map(list, itertools.product(others, repeat=limit))
        answers = [ids for ids in answers if ids[: len(prefix)] == prefix]
        sources = tf.repeat(source_ids[i : i + 1], len(answers), axis=0)
        scores = scores_of(
            model,
            tf.constant(answers)[:, None],
            {"source_ids": sources},
            length_penalty=length_penalty,
        )[:, 0]
        order = np.argsort(-scores.numpy())[:n_best]
        expected = [answers[j] for j in order]
        np.testing.assert_array_equal(best.ids[i, :, :limit], expected)
        np.testing.assert_allclose(
            best.scores[i], scores.numpy()[order], atol=1e-4
        )


@one_search
def test_searches_follow_the_prefix(
    make_model, source_ids, searched, scores_of, search
):
    """Cut by the limit, ended by END, and in spite of other constraints."""
    model = make_model(bias={6: -9.0, END: -9.0})
    search = search(constraints=[ForbiddenTokens([6]), NoRepeatedNgrams(1)])
    prefix = tf.constant([[6, 6, 4], [6, END, PAD], [PAD, PAD, PAD]])

    best = searched(search, model, source_ids, [2, 9, 9], prefix=prefix)

    first, second, third = answers_of(best)
    assert (first, second) == ([6, 6], [6, END])
    assert 6 not in third
    assert len(third) == len(set(third))
    expected = scores_of(model, best.ids)
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


@one_search
def test_prefixes_alone_in_a_batch_and_of_nothing(
    make_model, source_ids, searched, traced_with_prefix, search
):
    model, limits = make_model(), tf.constant(LIMITS)
    prefix = tf.constant([[4, 5], [6, PAD], [PAD, PAD]])
    with_prefix = traced_with_prefix(search(), model)

    together = with_prefix(source_ids, limits, prefix)
    without = searched(search(), model, source_ids, limits)

    assert answers_of(together)[2] == answers_of(without)[2]
    for i in range(3):
        row = slice(i, i + 1)
        alone = with_prefix(source_ids[row], limits[row], prefix[row])
        assert answers_of(alone) == answers_of(together)[row]
    for nothing in (prefix[:, :0], tf.zeros_like(prefix)):
        same = with_prefix(source_ids, limits, nothing)
        np.testing.assert_array_equal(same.ids, without.ids)
    none = with_prefix(source_ids[:0], limits[:0], prefix[:0])
    assert none.ids.shape[:2] == (0, 1)


@every_search
@pytest.mark.parametrize("token", [START, 99, -3])
def test_a_prefix_that_no_answer_can_have_ends(
    make_model, source_ids, search, token
):
    inputs, prefix = {"source_ids": source_ids}, tf.fill((3, 1), token)

    best = search()(make_model(), inputs, LIMITS, prefix=prefix)

    assert answers_of(best) == [[END]] * 3


def test_tokens_that_may_follow_a_prefix(make_model, source_ids):
    """The first two prefixes end; the tokens after the next are free."""
    prefix, inputs = [[4, 5], [6, PAD], [PAD, PAD]], {"source_ids": source_ids}
    following = np.ones((3, 7), bool)
    following[:2] = np.arange(7) == [[6], [END]]
    forced = ForcedPrefix(prefix, following)
    model = make_model()
    for search in (BeamSearch(), GreedySearch()):
        best = search(model, inputs, LIMITS, prefix=forced)
        free = search(model, inputs, LIMITS, prefix=prefix)
        assert best.ids[0, 0, :3].numpy().tolist() == [4, 5, 6]
        assert best.ids[1, 0, :3].numpy().tolist() == [6, END, PAD]
        length = min(best.ids.shape[2], free.ids.shape[2])
        np.testing.assert_array_equal(
            best.ids[2, 0, :length], free.ids[2, 0, :length]
        )
    as_constraint = BeamSearch(constraints=(forced,))(model, inputs, LIMITS)
    same = BeamSearch()(model, inputs, LIMITS, prefix=forced)
    np.testing.assert_array_equal(as_constraint.ids, same.ids)
    assert forced.get_config()["following"] == following.tolist()
    fewer = ForcedPrefix(prefix, np.ones((3, 6), bool))  # of a tokenizer
    best = BeamSearch()(model, inputs, LIMITS, prefix=fewer)
    assert best.ids[0, 0, 2] not in (6, PAD)


def test_forced_prefix_as_a_constraint(make_model, source_ids):
    inputs, prefix = {"source_ids": source_ids}, [[4, 5], [6, PAD], [1, 4]]
    model, forced = make_model(), ForcedPrefix(prefix)

    best = BeamSearch(constraints=[forced])(model, inputs, LIMITS)
    same = BeamSearch()(model, inputs, LIMITS, prefix=prefix)

    np.testing.assert_array_equal(best.ids, same.ids)
    assert forced.get_config() == {"prefix": prefix}


@every_search
def test_prefixes_of_another_batch(make_model, source_ids, search):
    inputs = {"source_ids": source_ids}
    with pytest.raises(ValueError, match=r"prefix\.shape=\(1, 2\)"):
        search()(make_model(), inputs, LIMITS, prefix=[[4, 5]])


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        (ForbiddenTokens, [-1]),
        (ForbiddenTokens, [1.5]),
        (ForbiddenTokens, 4),
        (NoRepeatedNgrams, 0),
        (NoRepeatedNgrams, 2.0),
        (NoRepeatedNgrams, True),
        (NoRepeatedNgrams, 2**31),
        (RepetitionPenalty, 0.5),
        (RepetitionPenalty, math.nan),
        (RepetitionPenalty, math.inf),
        (MinLength, -1),
        (MinLength, 1.5),
        (ForcedPrefix, [4, 5]),
    ],
)
def test_bad_fields(constraint, value):
    with pytest.raises(ValueError, match="Received: "):
        constraint(value)


def test_forbidden_tokens_beyond_the_vocabulary(make_model, source_ids):
    search = GreedySearch(constraints=[ForbiddenTokens([7])])
    with pytest.raises(ValueError, match=r"size 7\. Received: ids=\[7\]"):
        search(make_model(), {"source_ids": source_ids}, LIMITS)


@pytest.mark.parametrize(
    ("constraint", "config"),
    [
        (ForbiddenTokens([4, 5]), {"ids": [4, 5]}),
        (NoRepeatedNgrams(3), {"n": 3}),
        (RepetitionPenalty(1.2), {"penalty": 1.2}),
        (MinLength(3), {"length": 3}),
    ],
)
def test_configs(constraint, config):
    assert constraint.get_config() == config
    assert type(constraint)(**config) == constraint


SURFACES = [b"", b"", b"", b"", b"ab", b"c", b"\xe6\x97", b"\xa5", b"\n", b"."]
STRINGS = ["bc", ".", "日", "\n\n", "(a", "c.c", "\\", "[^x]*$"]


def ended(strings, ids, surfaces=SURFACES):
    """Whether each row has END next, in a graph of any size."""
    ids = np.array(ids, "int32")
    constraint = StopStrings(strings, surfaces)
    function = tf.function(
        constraint,
        input_signature=[
            tf.TensorSpec((None, None), tf.float32),
            tf.TensorSpec((None, None), tf.int32),
        ],
        autograph=False,
    )
    log_probs = np.random.normal(size=(len(ids), len(surfaces)))
    log_probs = log_probs.astype("float32")
    found = function(log_probs, ids).numpy()
    ends = np.isinf(found).any(axis=1)
    np.testing.assert_array_equal(found[~ends], log_probs[~ends])
    np.testing.assert_array_equal(found[ends, END], log_probs[ends, END])
    assert (np.delete(found[ends], END, axis=1) == -math.inf).all()
    return ends.tolist()


@pytest.mark.parametrize(
    ("strings", "ids", "expected"),
    [
        (["bc"], [[4, 5], [5, 4], [4, 4]], [True, False, False]),
        (["abc"], [[5, 4, 5, 8], [4, 8, 5, 5]], [True, False]),
        (["b"], [[4], [5]], [True, False]),
        (["日"], [[6, 7], [6, 6], [7, 6]], [True, False, False]),
        (["\n\n"], [[8, 8], [8, 5]], [True, False]),
        (["."], [[5, 9], [4, 5]], [True, False]),
        (["c.c"], [[5, 9, 5], [5, 5, 5]], [True, False]),
        (["zz", "c"], [[4, 5], [4, 4]], [True, False]),
        (["c"], [[], []], [False, False]),
    ],
)
def test_what_has_a_string_ends(strings, ids, expected):
    assert ended(strings, ids) == expected


@pytest.mark.parametrize("string", STRINGS)
def test_strings_are_no_regular_expressions(string):
    text = f"xa{string}b\nc{string}"
    tokenizer = Tokenizer.train([text], 99, "char", verbatim=True)
    surfaces = tokenizer.surfaces()
    cut = tf.strings.regex_replace([text, "xab"], stop_pattern([string]), "")
    assert cut.numpy().tolist() == [b"xa", b"xab"]
    for each in (text, "xab\nc"):
        ids = tokenizer.tokenize([each]).to_list()
        assert ended([string], ids, surfaces) == [string in each]


@pytest.mark.parametrize("search", [GreedySearch, BeamSearch])
def test_a_search_ends_after_a_string(
    make_model, source_ids, searched, scores_of, search
):
    surfaces = [b"", b"", b"", b"", b"a", b"b", b"ca"]
    model = make_model(bias={END: -9.0, UNK: -99.0})
    ends = StopStrings(["ab", "aa"], surfaces)
    best = searched(search(constraints=[ends]), model, source_ids, [9] * 3)
    rows = zip(best.ids[:, 0].numpy(), best.lengths[:, 0], strict=True)
    for ids, length in rows:
        texts = [b"".join(surfaces[i] for i in ids[:n]) for n in range(length)]
        are_found = [b"ab" in text or b"aa" in text for text in texts]
        assert not any(are_found[:-1])
        # A text may also end before it contains one.
        assert ids[length - 1] == END or not are_found[-1]
    np.testing.assert_allclose(
        best.scores, scores_of(model, best.ids), atol=1e-4
    )


@pytest.mark.parametrize("strings", [[], [""], ["a", ""], [b"a"], [5]])
def test_wrong_strings(strings):
    with pytest.raises(ValueError, match="strings that are not empty"):
        StopStrings(strings, SURFACES)
