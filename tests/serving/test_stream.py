"""Answers while they are found: settled, complete, and the same at the end."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import TextPreprocessor, Tokenizer
from kseq.decoding import (
    BeamSearch,
    GreedySearch,
    MinLength,
    NoRepeatedNgrams,
    RepetitionPenalty,
    Sampling,
)
from kseq.decoding.stepwise_search import common_prefix
from kseq.layers import LuongAttention
from kseq.models import LSTMSeq2Seq
from kseq.serving import Generator, ensemble
from kseq.user_error import ArgumentError
from tests.recipe_models import SERVED, inputs_of, make_served
from tests.server import real_exports
from tests.serving.conftest import LINES, Lazy
from tests.slow import slow

TEXTS = [*LINES, "", "the dog"]
SEARCHES = {
    "beam": BeamSearch(beam_size=3),
    "patience": BeamSearch(beam_size=3, patience=1.0),
    "groups": BeamSearch(beam_size=4, num_groups=2),
    "coverage": BeamSearch(beam_size=2, coverage_penalty=0.3),
    "greedy": GreedySearch(),
    "sampling": Sampling(temperature=0.7, seed=5),
    "samples": Sampling(temperature=0.7, seed=5, num_samples=3),
}


@pytest.fixture(scope="module", params=["transformer", "lstm"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def searching(generators):
    """Generators by kind and name of their search: tracing takes seconds."""
    return Lazy(lambda key: generators[key[0]].with_search(SEARCHES[key[1]]))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("lstm", name) for name in SEARCHES),
        *(("transformer", name) for name in ("beam", "greedy")),
    ],
)
def test_joined_parts_are_the_answer(searching, kind, name):
    predictor = searching[kind, name].predictor()
    expected = predictor.answers(TEXTS)
    num_parts = []
    for text, answer in zip(TEXTS, expected, strict=True):
        stream = predictor.stream(text)
        assert stream.answer is None
        parts = list(stream)
        assert "".join(parts) == answer.hypotheses[0].text
        assert stream.answer.truncated == answer.truncated
        assert stream.answer.hypotheses[0].score == pytest.approx(
            answer.hypotheses[0].score, rel=1e-5
        )
        num_parts.append(len(parts))
    if name in ("greedy", "sampling"):
        assert max(num_parts) > 1


def test_a_batch_is_streamed_row_by_row(searching, kind):
    """Each row has its own answer, and never loses what was settled."""
    generator = searching[kind, "beam"]
    signatures = generator.stream_signatures
    text = tf.constant(TEXTS)
    best = generator.signatures["serving_default"](text=text)
    expected = best["text"].numpy().tolist()
    outputs = signatures["stream_start"](text=text)
    before = [b""] * len(TEXTS)
    steps = 0
    while True:
        state = {k: v for k, v in outputs.items() if k.startswith("state_")}
        more = tf.ones(len(TEXTS), tf.int32)
        outputs = signatures["stream_next"](more=more, **state)
        found = outputs["text"].numpy().tolist()
        done = outputs["done"].numpy()
        for row, text in enumerate(found):
            assert text.startswith(before[row])
            assert expected[row].startswith(text)
            assert not done[row] or text == expected[row]
        before, steps = found, steps + 1
        if done.all():
            break
    assert steps > 2
    np.testing.assert_allclose(outputs["score"], best["score"], rtol=1e-5)
    longest = max(expected, key=len)
    assert outputs["tokens"].numpy().max() >= len(longest.decode()) // 4


@pytest.mark.parametrize("name", ["beam", "greedy"])
def test_several_tokens_at_once(searching, kind, name):
    generator = searching[kind, name]
    signatures = generator.stream_signatures
    for text in TEXTS:
        [expected] = generator.predictor()([text])
        started = signatures["stream_start"](text=tf.constant([text]))
        state = {k: v for k, v in started.items() if k.startswith("state_")}
        for more in (3, 1000):
            found = signatures["stream_next"](more=tf.constant([more]), **state)
            is_done = bool(found["done"][0])
            assert is_done or found["tokens"][0] >= 3
            assert expected.startswith(found["text"][0].numpy().decode())
            state = {k: v for k, v in found.items() if k.startswith("state_")}
        assert is_done
        assert found["text"][0].numpy().decode() == expected


@pytest.mark.parametrize("name", ["beam", "greedy"])
def test_the_text_of_the_first_tokens(searching, kind, name):
    generator = searching[kind, name]
    signatures = generator.stream_signatures
    started = signatures["stream_start"](text=tf.constant(TEXTS))
    state = {k: v for k, v in started.items() if k.startswith("state_")}
    more = tf.fill([len(TEXTS)], 1000)
    found = signatures["stream_next"](more=more, **state)
    ids = found["ids"]
    lengths = tf.math.count_nonzero(ids, axis=1, dtype=tf.int32)
    np.testing.assert_array_equal(lengths, found["tokens"])
    for count in (0, 1, 3, ids.shape[1]):
        cut = signatures["stream_text"](ids=ids[:, :count])["text"]
        expected = generator.texts(ids[:, :count]).numpy().tolist()
        for given, text in zip(cut.numpy(), expected, strict=True):
            assert given.decode() == text.decode().rstrip("\ufffd")
    np.testing.assert_array_equal(
        generator.texts(ids).numpy(), found["text"].numpy()
    )


@dataclasses.dataclass(frozen=True)
class Say:
    """A constraint: the tokens of an answer, which may be assigned."""

    ids: tf.Variable
    is_row_wise = True

    def __call__(self, log_probs, ids):
        wanted = self.ids[tf.shape(ids)[1]]
        size = tf.shape(log_probs)[-1]
        return tf.where(tf.range(size) == wanted, log_probs, -np.inf)


@pytest.fixture(scope="module")
def says():
    """What says a text, whatever it is asked; by its stop strings.

    Its characters are spelled in bytes.
    """
    tokenizer = Tokenizer.train(["ab ba"], 265, "bpe")
    model = LSTMSeq2Seq(
        *(tokenizer.vocab_size,) * 2,
        embedding_dim=4,
        units=4,
        attention=LuongAttention("dot"),
    )
    ids = tf.Variable([0], shape=[None], dtype=tf.int32)
    search = GreedySearch(constraints=(Say(ids),))
    predictors = Lazy(
        lambda stop: Generator(
            model,
            TextPreprocessor(tokenizer),
            tokenizer,
            search,
            max_length=32,
            stop=stop,
        ).predictor()
    )

    def says(text, stop=()):
        row = tokenizer.tokenize_with_end([text])[0].numpy()[0]
        ids.assign(tf.cast(row, tf.int32))
        return predictors[stop]

    return says


@pytest.mark.parametrize(
    "text", ["€a日本b", "ab\ufffdba", "\ufffd", "e\u0301 \U0001f600"]
)
def test_characters_are_complete(says, text):
    parts = list(says(text).stream("a"))
    assert "".join(parts) == text
    assert all("\ufffd" not in part for part in parts) or "\ufffd" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ab aab!", "ab "),  # the stop string is aab
        ("ab aabba", "ab "),
        ("aa aa", "aa aa"),  # an end that only begins it
        ("aab", ""),
        ("a日本b", "a"),
        ("a日b", "a日b"),
    ],
)
def test_no_part_of_a_stop_string_is_shown(says, text, shown):
    predictor = says(text, stop=("aab", "日本"))
    assert predictor(["a"]) == [shown]
    assert "".join(predictor.stream("a")) == shown


def test_common_prefix():
    ids = tf.constant(
        [
            [[4, 5, 6], [4, 5, 7], [8, 5, 6]],
            [[4, 5, 6], [4, 6, 6], [4, 5, 6]],
            [[4, 5, 6], [4, 6, 6], [4, 5, 6]],
            [[4, 5, 6], [4, 6, 6], [4, 5, 6]],
        ],
        tf.int64,
    )
    counts = tf.constant([[1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 0, 0]], tf.int32)
    found = common_prefix(ids, counts == 1).numpy().tolist()
    assert found == [[4, 5, 0], [4, 0, 0], [4, 6, 6], [0, 0, 0]]


# Other tests load that of the LSTM as well.
@pytest.mark.parametrize("kind", [slow("transformer"), "lstm"])
def test_an_export_streams(loaded_export):
    for text in TEXTS:
        stream = loaded_export.stream(text)
        parts = list(stream)
        assert ["".join(parts)] == loaded_export([text])
        assert stream.answer == loaded_export.answers([text])[0]


@pytest.mark.parametrize("kind", ["lstm"])
@pytest.mark.parametrize("given", [["a"], [["a"]], 3, None, np.array("a")])
def test_what_is_no_text_is_refused(loaded_export, given):
    with pytest.raises(ArgumentError, match="of text must be a string"):
        loaded_export.stream(given)


@pytest.mark.parametrize("kind", ["lstm"])
def test_without_the_signatures_the_answer_comes_at_once(
    loaded_export, monkeypatch
):
    monkeypatch.delitem(loaded_export.signatures, "stream_start")
    assert list(loaded_export.stream(TEXTS[0])) == loaded_export(TEXTS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVED)
def test_every_model_streams(kind):
    served = make_served(kind)
    predictor = served.predictor()
    if not hasattr(predictor, "stream"):
        pytest.skip("no text")
    given = inputs_of(kind)
    for each, answer in zip(given, predictor(given), strict=True):
        assert "".join(predictor.stream(each)) == answer


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        # Each turn has its END, and the beginning of a word is a piece.
        ("dialogue", {"turns": [["no", "Hi!"], ["no", ""]]}, [9, 4]),
        # START counts.
        ("language model", {"prompt": ["cat", ""]}, [4, 1]),
    ],
)
def test_prompt_tokens_are_those_of_the_source(kind, given, expected):
    served = real_exports.make_served(kind)
    start = served.stream_signatures["stream_start"]
    draws = {"temperature": [1.0] * 2, "top_p": [0.9] * 2}
    seed = tf.constant([1, 1], tf.int64)
    given = {name: tf.constant(each) for name, each in (given | draws).items()}
    found = start(seed=seed, **given)
    assert found["prompt_tokens"].numpy().tolist() == expected


@pytest.mark.slow
def test_an_ensemble_streams(generators):
    first, second = generators["transformer"], generators["lstm"]
    joined = ensemble({"a": first, "b": second})
    predictor = joined.predictor()
    for text in TEXTS:
        assert ["".join(predictor.stream(text))] == predictor([text])


@pytest.mark.slow
def test_streams_with_constraints(generators):
    constraints = (MinLength(4), NoRepeatedNgrams(2), RepetitionPenalty(1.3))
    for search in (BeamSearch(3), GreedySearch()):
        search = dataclasses.replace(search, constraints=constraints)
        predictor = generators["lstm"].with_search(search).predictor()
        for text in TEXTS:
            assert ["".join(predictor.stream(text))] == predictor([text])
