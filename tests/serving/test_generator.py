from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.data import TextPreprocessor
from kseq.decoding import (
    BeamSearch,
    Ensemble,
    ForbiddenTokens,
    GreedySearch,
)
from kseq.serving import Generator, export
from kseq.user_error import ArgumentError, UserError
from tests.recipe_models import inputs_of, make_served
from tests.slow import slow

ANSWERS = ("serving_default", "n_best", "explain")


def call(generator, name, text, **others):
    return generator.signatures[name](
        text=tf.constant(text),
        **{key: tf.constant(value) for key, value in others.items()},
    )


def test_best_answer(generator, text):
    answer = call(generator, "serving_default", text)

    assert answer["text"].shape == answer["score"].shape == (5,)
    real = [0, 2, 3]
    assert all(line.decode() for line in answer["text"].numpy()[real])
    assert (answer["score"].numpy()[real] < 0).all()


def test_blank_line_gives_a_blank_line(generator, text):
    answer, n_best = (
        call(generator, "serving_default", text),
        call(generator, "n_best", text),
    )

    for blank in (1, 4):
        assert answer["text"][blank] == b""
        assert answer["score"][blank] == 0
        assert n_best["texts"][blank].numpy().tolist() == [b""] * 4
        assert n_best["scores"][blank].numpy().tolist() == [0] * 4


def test_long_line_is_cut_and_said_to_be(generator, text):
    for answer in (
        call(generator, "serving_default", text),
        call(generator, "n_best", text),
    ):
        assert answer["truncated"].numpy().tolist() == [0, 0, 1, 0, 0]
    assert call(generator, "explain", text)["source_tokens"].shape == (5, 32)


def test_n_best_begins_with_the_best(generator, text):
    best, n_best = (
        call(generator, "serving_default", text),
        call(generator, "n_best", text),
    )

    assert n_best["texts"].shape == n_best["scores"].shape == (5, 4)
    assert (
        n_best["texts"][:, 0].numpy().tolist() == best["text"].numpy().tolist()
    )
    np.testing.assert_allclose(n_best["scores"][:, 0], best["score"], atol=1e-4)


def test_prefix_begins_each_answer(generator, text):
    """Also one that is longer than the answer could be without it."""
    prefixes = ["mat", "cat", "日本 Äpfel", "the cat sat on the mat and", ""]
    answer = call(generator, "prefix", text, prefix=tf.constant(prefixes))
    texts = np.char.decode(answer["texts"].numpy().astype(bytes))
    assert texts.shape == answer["scores"].shape == (5, 4)
    for blank in (1, 4):
        assert set(texts[blank]) == {""}
    for row in (0, 2, 3):
        for line, score in zip(texts[row], answer["scores"][row], strict=True):
            assert line.startswith(prefixes[row]) or score == -np.inf
        assert len(texts[row, 0]) >= len(prefixes[row])


def test_white_space_at_the_end_of_a_prefix_finishes_the_word(generator, text):
    for prefix in ("ma", "the ca", "Äpf"):
        found = {}
        for end in ("", " ", "\t", " \r", "\r"):
            given = tf.constant([prefix + end] * 5)
            answer = call(generator, "prefix", text, prefix=given)
            texts = np.char.decode(answer["texts"].numpy().astype(bytes))
            is_found = (answer["scores"].numpy() > -np.inf) & (texts != "")
            found[end] = [*map(tuple, np.where(is_found, texts, ""))]
        finished = [each for row in found[" "] for each in row if each]
        assert finished
        assert all(f"{each} ".startswith(prefix + " ") for each in finished)
        assert found["\t"] == found[" \r"] == found[" "]
        assert found["\r"] == found[""]
        assert found[" "] != found[""]


def test_no_prefix_changes_nothing(generator, text):
    n_best = call(generator, "n_best", text)
    for blank in ("", " \t"):
        prefix = tf.constant([blank] * 5)
        answer = call(generator, "prefix", text, prefix=prefix)
        np.testing.assert_array_equal(answer["texts"], n_best["texts"])
        np.testing.assert_allclose(
            answer["scores"], n_best["scores"], atol=1e-5
        )


def test_score_is_what_the_model_says(generator):
    source = generator.preprocessor(["the cat"])
    ids = [*generator.tokenizer.tokenize(["a dog"]).numpy()[0], END]
    logits = generator.model(
        {**source.inputs, "target_ids": tf.constant([[START, *ids[:-1]]])}
    )
    log_probs = tf.nn.log_softmax(logits)[0].numpy()
    total = sum(log_probs[i, id] for i, id in enumerate(ids))
    penalty = (5 + len(ids)) / 6

    answer = call(
        generator, "score", ["the cat", "", ""], target=["a dog", "", "a"]
    )
    score, empty, not_empty = answer["score"].numpy()
    assert score == pytest.approx(total / penalty, abs=1e-4)
    assert empty == 0
    assert not_empty < 0

    expected = [log_probs[i, id] for i, id in enumerate(ids)]
    of_tokens = answer["token_log_probs"].numpy()
    np.testing.assert_allclose(of_tokens[0], expected, atol=1e-4)
    np.testing.assert_allclose(of_tokens.sum(1), answer["log_prob"], rtol=1e-5)
    assert not of_tokens[1].any()
    tokens = answer["target_tokens"].numpy()
    assert b"".join(tokens[0]).decode() == "▁a▁dog</s>"
    assert tokens[1].tolist() == [b"</s>", *[b""] * (len(ids) - 1)]


@pytest.mark.parametrize(
    "kind", ["chat hierarchical", slow("translate_transformer")]
)
def test_coverage_counts_in_the_scores_of_given_answers(kind):
    """Of turns, too, whose mask has an axis for them."""
    search = BeamSearch(2, length_penalty=0.0, coverage_penalty=0.4)
    generator = make_served(kind).with_search(search)
    given = inputs_of(kind)[:1]
    raw = {generator.preprocessor.input_name: tf.constant(given)}
    target = tf.constant(["a dog"])
    answer = generator.signatures["score"](target=target, **raw)

    inputs = generator.preprocessor(**raw).inputs
    labels, _ = generator.tokenizer.tokenize_with_end(target, 99)
    shifted = [[START, *labels.to_list()[0][:-1]]]
    weights = generator.model.attention_weights(
        {**inputs, "target_ids": tf.constant(shifted)}
    )
    real = np.reshape(inputs["source_ids"], -1) != PAD
    covered = np.sum(weights, axis=1)[0, real]
    gained = 0.4 * np.log(np.minimum(covered, 1)).sum()
    gap = answer["score"] - answer["log_prob"]
    assert gap.numpy() == pytest.approx([gained], abs=1e-4)


def test_explain(generator, text):
    answer = call(generator, "explain", text)

    sources, targets = (
        np.char.decode(answer[name].numpy().astype(bytes))
        for name in ("source_tokens", "target_tokens")
    )
    assert "".join(sources[0]).replace("▁", " ").strip() == "the cat</s>"
    attention = answer["attention"].numpy()
    assert attention.shape == (*targets.shape, sources.shape[1])
    np.testing.assert_allclose(attention.sum(-1), targets != "", atol=1e-5)
    beyond = (targets == "")[:, :, None] | (sources == "")[:, None, :]
    assert (attention[beyond] == 0).all()

    best = call(generator, "serving_default", text)
    for name, value in best.items():
        np.testing.assert_array_equal(answer[name], value)
    line = best["text"].numpy()[0].decode()
    spelled = "".join(targets[0]).removesuffix("</s>")
    assert spelled.replace("▁", " ").strip() == line.strip()


def test_attention_is_that_of_each_token(generator):
    answer = call(generator, "explain", tf.constant(["the cat"]))
    source = generator.preprocessor.tokenizer.tokenize(["the cat"]).to_tensor()
    source_ids = tf.concat([source, [[END]]], axis=1)
    target = generator.tokenizer
    spelled = target.pieces(tf.range(target.vocab_size)).numpy().tolist()
    tokens = filter(None, answer["target_tokens"].numpy()[0])
    ids = [spelled.index(token) for token in tokens]

    weights = generator.model.attention_weights(
        {
            "source_ids": source_ids,
            "target_ids": tf.constant([[START, *ids[:-1]]]),
        }
    )

    attention = answer["attention"][:, : len(ids)]
    np.testing.assert_allclose(attention, weights, atol=1e-5)


def test_line_alone_and_in_a_batch(generator, text):
    together = call(generator, "serving_default", text)

    for i, line in enumerate(text):
        alone = call(generator, "serving_default", line[None])
        assert alone["text"][0] == together["text"][i]
        np.testing.assert_allclose(
            alone["score"][0], together["score"][i], atol=1e-4
        )


@pytest.mark.parametrize("lines", [[], [""]], ids=["no line", "a blank line"])
def test_nothing_to_say(generator, lines):
    for name in ANSWERS:
        answer = call(generator, name, tf.constant(lines, tf.string))
        assert {value.shape[0] for value in answer.values()} == {len(lines)}
    lines = tf.constant(lines, tf.string)
    answer = generator.signatures["score"](text=lines, target=lines)
    assert {value.shape[0] for value in answer.values()} == {len(lines)}


def test_one_graph_for_all_sizes(generator, text):
    functions = [generator.signatures[name] for name in ANSWERS]
    for function in functions:
        function(text=text)
    traced = [f.experimental_get_tracing_count() for f in functions]

    for function in functions:
        for lines in (["a"], ["the cat", "a dog"], ["", "b", "c d e f g"]):
            function(text=tf.constant(lines))

    again = [f.experimental_get_tracing_count() for f in functions]
    assert again == traced


@pytest.fixture
def eagerly():
    """Tracing a search would take longer than its steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


# 3 shortens nothing, as 0 does.
@pytest.mark.parametrize(
    ("training_length", "length_ratio", "searched_anew"),
    [
        *((3, 0.5, False), (20, 2.5, True), slow(0, 0.0, False)),
        *(slow(3, 1.5, True), slow(40, 0.0, False)),
    ],
)
def test_an_answer_may_be_as_long_as_those_of_training(
    generator, training_length, length_ratio, searched_anew, eagerly
):
    """The source of the last answer is blank."""
    endless = Generator(
        generator.model,
        generator.preprocessor,
        generator.tokenizer,
        GreedySearch(constraints=(ForbiddenTokens((END,)),)),
        training_length=training_length,
        length_ratio=length_ratio,
    )
    if searched_anew:
        endless = endless.with_search(endless.search)
    source = generator.preprocessor(["a", "the", ""])
    factor = 2 * max(1, length_ratio)
    longest = np.maximum(factor * source.lengths.numpy() + 10, training_length)
    longest[2] = 0

    ids = endless.best(source).ids[:, 0]
    np.testing.assert_array_equal(np.sum(ids != PAD, axis=1), longest)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_length": 1},
        {"training_length": -1},
        {"length_ratio": -1},
        {"search": "greedy"},
        {"search": GreedySearch},
    ],
)
def test_bad_arguments(tokenizers, wrong):
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        Generator(None, None, tokenizers[1], **wrong)


def test_a_model_that_copies_has_one_vocabulary(tokenizers):
    source, target = tokenizers
    model = SimpleNamespace(copy=True)
    with pytest.raises(ArgumentError, match="one vocabulary of source and"):
        Generator(model, TextPreprocessor(source), target)


def test_no_attention_of_another_answer(generator):
    predictor = generator.predictor()
    for words, options in (
        ("a prefix", {"prefixes": ["mat"]}),
        ("phrases", {"phrases": [(["mat"], [])]}),
    ):
        with pytest.raises(UserError, match=f"answers with {words}"):
            predictor.answers(["the cat"], attention=True, **options)


@pytest.mark.parametrize("phrases", [3, ["mat"], (["mat"],), "ab", None])
def test_phrases_are_two_lists_for_each_input(generators, phrases):
    predictor = generators["lstm"].predictor()
    with pytest.raises(ArgumentError, match="must have two lists of strings"):
        predictor.answers(["a mat"], phrases=[phrases])


class _WithoutWeights:
    """A model of a user that has what a search needs, and no more."""

    def __init__(self, model):
        self.variables = model.variables
        self.encode, self.decode_step = model.encode, model.decode_step
        self.read = model

    def __call__(self, inputs):
        return self.read(inputs)

    def count_params(self):
        return self.read.count_params()


def test_a_model_need_not_give_its_weights(generator, text, tmp_path):
    model = _WithoutWeights(generator.model)
    others = generator.preprocessor, generator.tokenizer, GreedySearch()
    greedy = Generator(generator.model, *others)
    expected = call(greedy, "serving_default", text)["text"].numpy().tolist()

    for each in (model, Ensemble([model, generator.model])):
        made = Generator(each, *others)
        assert "explain" not in made.signatures
        with pytest.raises(UserError, match="no signature explain"):
            made.predictor().attention(["a"])

    path = export(Generator(model, *others), tmp_path / "model")
    loaded = tf.saved_model.load(str(path)).signatures["serving_default"]
    found = loaded(text=tf.constant(text))["text"].numpy().tolist()
    assert found == expected
