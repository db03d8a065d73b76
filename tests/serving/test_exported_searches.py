"""Searches of an export against all answers, also in half precision."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START, UNK
from kseq.data import PromptPreprocessor, TextPreprocessor, Tokenizer
from kseq.decoding import BeamSearch, GreedySearch
from kseq.layers import LuongAttention
from kseq.models import LSTMSeq2Seq, Transformer, TransformerLM
from kseq.serving import Generator, export
from tests.decoding.test_diverse_beams import (
    DIVERSITY,
    EACH,
    GROUPS,
    plain_groups,
)
from tests.slow import slow

LIMIT = 4
TOKENS = (UNK, END, 4, 5, 6)
TOLERANCES = {"float32": 1e-4, "mixed_bfloat16": 0.1, "mixed_float16": 0.02}
LINES = ["ab", "ba b", "b", "aab ba"]
CASES = [
    ("transformer", "mixed_bfloat16"),
    *(
        slow(kind, dtype)
        for kind, dtype in itertools.product(
            ("transformer", "compiled by XLA", "lstm"), TOLERANCES
        )
        if (kind, dtype) != ("transformer", "mixed_bfloat16")
    ),
]


@pytest.fixture(scope="module")
def tokenizer():
    """Of a space, "a" and "b"."""
    return Tokenizer.train(["ab ba", "a b", "bb aa"], 7, "char")


@pytest.fixture(scope="module")
def unspaced():
    """Of a space and two characters of a script without spaces."""
    return Tokenizer.train(["日本 本日", "日 本", "本本 日日"], 7, "char")


@pytest.fixture
def make_generator(tokenizer):
    """A function: a generator whose answers are no near ties."""

    def make(kind, dtype, search, tokenizer=tokenizer):
        model = model_of(kind, dtype)
        for i, weight in enumerate(model.trainable_variables):
            values = tf.random.stateless_normal(weight.shape, seed=(0, i))
            weight.assign(0.7 * values)
        preprocessor = TextPreprocessor(tokenizer, 16)
        if kind == "language model":
            preprocessor = PromptPreprocessor(tokenizer, 16)
        if kind == "compiled by XLA":
            model.compile(keras.optimizers.SGD(0.0), jit_compile=True)
            inputs = preprocessor(tf.constant(LINES[:1])).inputs
            inputs = {**inputs, "target_ids": tf.constant([[START, 4]])}
            model.fit(inputs, tf.constant([[4, END]]), verbose=0)
        return Generator(
            model, preprocessor, tokenizer, search, max_length=LIMIT + 1
        )

    return make


def model_of(kind, dtype):
    sizes = {"dtype": dtype}
    if kind != "language model":
        sizes |= {"source_vocab_size": 7, "target_vocab_size": 7}
    if kind == "lstm":
        attention = LuongAttention("dot")
        return LSTMSeq2Seq(
            **sizes, embedding_dim=8, units=8, attention=attention
        )
    sizes |= {"model_dim": 8, "ffn_dim": 16, "num_heads": 2}
    if kind == "language model":
        return TransformerLM(7, num_layers=1, max_length=32, **sizes)
    return Transformer(num_encoder_layers=1, num_decoder_layers=1, **sizes)


@pytest.fixture
def exported(tmp_path):
    """A function: the named signatures of a generator, read from an export."""

    def exported(generator, *names):
        generator.signatures = {
            name: generator.signatures[name] for name in names
        }
        generator.stream_signatures = {}
        path = str(export(generator, tmp_path / "model"))
        return tf.saved_model.load(path).signatures

    return exported


class AllAnswers:
    """What a model says about every answer to a line, by NumPy.

    Attributes:
        answers: list of tuples of tokens, END included.
        texts: list of bytes.
        following: dict, tokens so far -> (V,) log-probabilities of the next.
        log_probs: (N,), of the answers.
        coverage: (N,), sums of the logarithms of the attention in total.
    """

    def __init__(self, generator, line, beginning=()):
        others = [token for token in TOKENS if token != END]
        self.answers = [
            (*answer, END)
            for length in range(LIMIT)
            for answer in itertools.product(others, repeat=length)
        ]
        self.answers += itertools.product(others, repeat=LIMIT)
        self.answers = [
            answer
            for answer in self.answers
            if answer[: len(beginning)] == beginning
        ]
        count = len(self.answers)
        ids = np.zeros((count, LIMIT), "int32")
        for row, answer in zip(ids, self.answers, strict=True):
            row[: len(answer)] = answer
        self.texts = generator.texts(tf.constant(ids)).numpy().tolist()

        start = np.full((count, 1), START, "int32")
        source = generator.preprocessor(tf.constant([line])).inputs
        inputs = {
            **{name: tf.repeat(x, count, axis=0) for name, x in source.items()},
            "target_ids": tf.constant(
                np.concatenate([start, ids[:, :-1]], axis=1)
            ),
        }
        logits = tf.cast(generator.model(inputs), tf.float32)
        by_step = tf.nn.log_softmax(logits).numpy()
        self.following = {
            answer[:length]: by_step[row, length]
            for row, answer in enumerate(self.answers)
            for length in range(len(answer))
        }
        own = np.take_along_axis(by_step, ids[:, :, None], axis=2)[:, :, 0]
        real = ids != PAD
        self.log_probs = np.where(real, own, 0).sum(axis=1)
        weights = generator.model.attention_weights(inputs)
        weights = np.array(tf.cast(weights, tf.float32)) * real[:, :, None]
        weights = weights.sum(axis=1)[:, np.ravel(source["source_ids"] != PAD)]
        self.coverage = np.log(np.clip(weights, 1e-6, 1)).sum(axis=1)

    def texts_and_what_follows(self):
        for text, answer in zip(self.texts, self.answers, strict=True):
            yield text, "" if answer[-1] == END else "x"

    def scores(self, search):
        lengths = np.array([len(answer) for answer in self.answers])
        scores = self.log_probs / ((5 + lengths) / 6) ** search.length_penalty
        return scores + search.coverage_penalty * self.coverage

    def check(self, texts, scores, expected, tolerance):
        """That these are the best, but for near ties."""
        count = len(scores)
        best = np.sort(expected)[::-1][:count]
        np.testing.assert_allclose(scores, best, atol=tolerance)
        for text, score in zip(texts, scores, strict=True):
            own = [
                each
                for known, each in zip(self.texts, expected, strict=True)
                if known == text
            ]
            assert np.min(np.abs(np.array(own) - score)) < tolerance


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_a_wide_beam_finds_the_best_of_all(
    make_generator, exported, kind, dtype
):
    """With both penalties; also those that begin with a prefix."""
    search = BeamSearch(400, 0.6, coverage_penalty=0.5)
    generator = make_generator(kind, dtype, search)
    signatures = exported(generator, "n_best", "prefix")
    text, prefix = tf.constant(LINES), tf.constant(["", "b", "b", "a"])
    best = signatures["n_best"](text=text)
    begun = signatures["prefix"](text=text, prefix=prefix)

    tolerance = TOLERANCES[dtype]
    for item, line in enumerate(LINES):
        every = AllAnswers(generator, line)
        texts, scores = (best[name][item, :20] for name in ("texts", "scores"))
        expected = every.scores(search)
        every.check(texts.numpy(), scores, expected, tolerance)

        tokens = generator.tokenizer.tokenize(prefix)[item].numpy()
        every = AllAnswers(generator, line, tuple(tokens))
        texts, scores = (begun[name][item, :5] for name in ("texts", "scores"))
        expected = every.scores(search)
        every.check(texts.numpy(), scores, expected, tolerance)


@pytest.mark.slow  # the one above is as likely to fail
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_greedy_search_takes_the_likeliest(make_generator, exported, dtype):
    generator = make_generator("transformer", dtype, GreedySearch())
    signature = exported(generator, "serving_default")["serving_default"]
    found = signature(text=tf.constant(LINES))
    for item, line in enumerate(LINES):
        every = AllAnswers(generator, line)
        complete = likeliest_paths(every.following, TOLERANCES[dtype])
        scores = [
            log_prob / ((5 + len(tokens)) / 6)
            for tokens, log_prob in complete.items()
            if every.texts[every.answers.index(tokens)] == found["text"][item]
        ]
        gaps = np.abs(np.array(scores) - found["score"][item])
        assert np.min(gaps) < TOLERANCES[dtype]


def likeliest_paths(following, tolerance):
    """Answers of tokens that are the likeliest, but for near ties."""
    paths, complete = {(): 0.0}, {}
    while paths:
        tokens, log_prob = paths.popitem()
        if len(tokens) == LIMIT or tokens[-1:] == (END,):
            complete[tokens] = log_prob
            continue
        most = max(following[tokens][token] for token in TOKENS)
        for token in TOKENS:
            if (one := following[tokens][token]) > most - tolerance:
                paths[(*tokens, token)] = log_prob + one
    return complete


@pytest.mark.slow  # tests/decoding shows it
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_groups_differ_as_in_plain_python(make_generator, exported, dtype):
    search = BeamSearch(GROUPS * EACH, num_groups=GROUPS, diversity=DIVERSITY)
    generator = make_generator("transformer", dtype, search)
    signature = exported(generator, "n_best")["n_best"]
    found = signature(text=tf.constant(LINES))
    compared = 0
    for item, line in enumerate(LINES):
        every = AllAnswers(generator, line)
        scores = found["scores"][item].numpy()
        real = np.isfinite(scores)
        expected = every.scores(search)
        for text, score in zip(
            found["texts"][item].numpy()[real], scores[real], strict=True
        ):
            own = expected[[known == text for known in every.texts]]
            assert np.min(np.abs(own - score)) < TOLERANCES[dtype]
        best, gap = plain_groups(
            lambda ids, every=every: every.following[ids[1:]], LIMIT, TOKENS
        )
        if gap > TOLERANCES[dtype]:  # otherwise rounding decides
            best = [score for score, _ in best]
            np.testing.assert_allclose(
                scores[real], best, atol=TOLERANCES[dtype]
            )
            compared += 1
    assert compared or dtype != "float32"


@pytest.mark.parametrize("dtype", [slow(each) for each in TOLERANCES])
def test_phrases_in_a_graph(make_generator, dtype):
    """Required and forbidden ones, which no export has."""
    search = BeamSearch(400, 0.6)
    generator = make_generator("transformer", dtype, search)
    phrases = [(["ab"], []), (["ba"], ["b"]), ([], ["b"]), ([], [])]
    answers = generator.predictor().answers(LINES, n_best=9, phrases=phrases)
    for line, answer, (needed, refused) in zip(
        LINES, answers, phrases, strict=True
    ):
        every = AllAnswers(generator, line)
        is_fit = [
            set(needed) <= set(text.decode().split())
            # An answer that its limit cuts may go on with the same word.
            and not set(refused) & set((text.decode() + going_on).split())
            for text, going_on in every.texts_and_what_follows()
        ]
        scores = np.where(is_fit, every.scores(search), -math.inf)
        every.check(
            [each.text.encode() for each in answer.hypotheses],
            [each.score for each in answer.hypotheses],
            scores,
            TOLERANCES[dtype],
        )


@pytest.mark.slow  # tests/decoding shows it
def test_phrases_of_a_script_without_spaces(make_generator, unspaced):
    """With a space before them and without one."""
    search = BeamSearch(400, 0.6)
    generator = make_generator("transformer", "float32", search, unspaced)
    lines, required = ["日", "本日 本", "日"], ["本", "日本", "本日"]
    phrases = [([phrase], []) for phrase in required]
    answers = generator.predictor().answers(lines, n_best=9, phrases=phrases)
    for line, answer, phrase in zip(lines, answers, required, strict=True):
        every = AllAnswers(generator, line)
        is_fit = [phrase in text.decode() for text in every.texts]
        scores = np.where(is_fit, every.scores(search), -math.inf)
        every.check(
            [each.text.encode() for each in answer.hypotheses],
            [each.score for each in answer.hypotheses],
            scores,
            1e-4,
        )


@pytest.mark.parametrize("dtype", [slow(each) for each in TOLERANCES])
def test_samples_depend_on_the_seed_alone(make_generator, exported, dtype):
    generator = make_generator("language model", dtype, GreedySearch())
    eager = generator.signatures["sample"]
    signatures = exported(generator, "sample")
    prompts = tf.constant(["ab", "ba b"] * 8)
    draws = {
        "temperature": tf.fill((16,), 1.3),
        "top_p": tf.fill((16,), 0.95),
        "seed": tf.range(16, dtype=tf.int64) // 4,
    }
    found, again, plain = (
        sample(prompt=prompts, **draws)
        for sample in (signatures["sample"], signatures["sample"], eager)
    )
    texts = found["text"].numpy().tolist()
    assert again["text"].numpy().tolist() == texts
    assert plain["text"].numpy().tolist() == texts
    assert texts[:2] == texts[2:4]
    assert len(set(texts[::2])) > 1
    for row in (1, 8):
        one = {name: values[row : row + 1] for name, values in draws.items()}
        alone = signatures["sample"](prompt=prompts[row : row + 1], **one)
        assert alone["text"].numpy()[0] == texts[row]
        np.testing.assert_allclose(
            alone["score"],
            found["score"][row : row + 1],
            atol=TOLERANCES[dtype],
        )
