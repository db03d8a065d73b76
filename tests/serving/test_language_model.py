"""Continuations of prompts: the model, its run and its export."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import kseq
from kseq.control_tokens import END, PAD, START
from kseq.data import PromptPreprocessor, Tokenizer
from kseq.decoding import GreedySearch
from kseq.models import TransformerLM
from kseq.serving import Generator, export
from kseq.user_error import UserError
from tests.slow import slow

LETTERS = "abcdefgh \n"
PROMPTS = ["a b", "", "ge\ncab de", " ", "ab" * 20]


def generator_of(stop=()):
    """Untrained, but with answers that are no near ties."""
    tokenizer = Tokenizer.train([LETTERS], 99, "char", verbatim=True)
    model = TransformerLM(
        tokenizer.vocab_size,
        num_layers=1,
        model_dim=8,
        ffn_dim=16,
        num_heads=2,
        max_length=32,
        tie_output=False,
    )
    keras.utils.set_random_seed(4)
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    preprocessor = PromptPreprocessor(tokenizer, max_length=8)
    search = GreedySearch(length_penalty=0.0)
    return Generator(
        model, preprocessor, tokenizer, search, max_length=12, stop=stop
    )


@pytest.fixture(scope="module")
def plain():
    return generator_of()


@pytest.fixture(scope="module")
def expected(plain):
    """Whole continuations, from running text."""
    model, tokenizer = plain.model, plain.tokenizer
    texts = []
    for ids in tokenizer.tokenize(PROMPTS).to_list():
        ids, answer = [START, *ids[-7:]], []
        while len(answer) < 11 and END not in answer:
            inputs = {"target_ids": np.array([ids])}
            logits = model.loss_outputs(inputs, training=False)[0, -1].numpy()
            logits[[PAD, START]] = -np.inf
            answer.append(int(logits.argmax()))
            ids.append(answer[-1])
        texts.append(tokenizer.detokenize([answer]).numpy()[0].decode())
    assert len({*texts}) > 2
    return texts


@pytest.fixture(scope="module")
def stop(expected):
    """Two letters within one of the continuations, and a string of none."""
    longest = max(expected, key=len)
    assert len(longest) > 5
    return (longest[3:5], "(no such.text")


@pytest.fixture(scope="module")
def stopping(stop):
    return generator_of(stop)


@pytest.fixture(scope="module")
def run(stopping, run_of):
    return run_of(stopping)


# The road of an export is that of a translator.
@pytest.fixture(scope="module", params=["run", slow("export")])
def opened(request, stopping, run, tmp_path_factory):
    """Of a run, or of its export."""
    if request.param == "run":
        return kseq.load(run)
    return kseq.load(export(stopping, tmp_path_factory.mktemp("saved_models")))


def test_it_writes_what_the_model_does_in_training(plain, expected):
    served = plain.signatures["serving_default"]
    answer = served(prompt=tf.constant(PROMPTS))
    found = [text.decode() for text in answer["text"].numpy()]
    assert found == expected
    assert answer["truncated"].numpy().tolist() == [0, 0, 1, 0, 1]
    # Of a long prompt the end is read.
    ends = served(prompt=tf.constant([prompt[-7:] for prompt in PROMPTS]))
    assert ends["text"].numpy().tolist() == answer["text"].numpy().tolist()
    assert not ends["truncated"].numpy().any()


def test_no_prompts(plain):
    none = tf.constant([], tf.string)
    found = plain.signatures["serving_default"](prompt=none)
    assert found["text"].shape == (0,)
    found = plain.signatures["score"](prompt=none, target=none)
    assert found["score"].shape == (0,)


@pytest.mark.slow  # tests/decoding shows the search
def test_a_run_and_an_export_stop_where_a_string_begins(opened, expected, stop):
    stopped = [text.split(stop[0])[0] for text in expected]
    assert stopped != expected
    assert opened(PROMPTS) == stopped
    assert opened(PROMPTS[1:2]) == stopped[1:2]
    assert opened([]) == []


def test_a_different_search_stops_too(run, stopping, stop):
    search = GreedySearch()
    assert stopping.with_search(search).stop == stop
    assert kseq.load(run, search=search).served.stop == stop
    assert stopping.get_config()["stop"] == [*stop]
    assert stopping.search.constraints == ()


def test_a_score_is_a_loop_over_steps(opened, stopping):
    model, tokenizer = stopping.model, stopping.tokenizer
    targets = ["b\n", "a b", "", "cc", " "]
    expected = []
    for prompt, target in zip(PROMPTS, targets, strict=True):
        ids = tokenizer.tokenize([prompt, target]).to_list()
        state = model.encode({"source_ids": [[START, *ids[0][-7:]]]})
        last, total = START, 0.0
        for token in [*ids[1], END]:
            logits, state = model.decode_step(tf.constant([last]), state)
            total += float(tf.nn.log_softmax(logits)[0, token])
            last = token
        expected.append(total)
    found = opened.scores(PROMPTS, targets)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    cuts = opened.scores_and_cuts(PROMPTS, targets)
    assert [cut for _, cut in cuts] == [False, False, True, False, True]


def test_there_is_no_source_to_attend_to(opened):
    assert "explain" not in opened.signatures
    with pytest.raises(UserError, match="no attention to its source"):
        opened.attention(["a"])


def test_wrong_strings_to_stop(stop):
    with pytest.raises(ValueError, match="strings that are not empty"):
        generator_of(stop=[""])


def test_a_stream_traces_one_search(expected):
    """Not that of `sample`, which an export has."""
    generator = generator_of()
    stream = generator.predictor().stream(PROMPTS[0])
    assert "".join(stream) == expected[0]
    assert "stream_signatures" not in vars(generator)
