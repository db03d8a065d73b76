import numpy as np
import pytest
import tensorflow as tf

import kseq
from kseq import data, decoding, layers, models
from kseq.serving import Classifier, Generator, head_attention
from kseq.user_error import UserError
from tests.data.wav import tone, wav
from tests.slow import slow

SIZES = {"model_dim": 8, "ffn_dim": 16, "num_heads": 2}
CELLS = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
SPEECH = [wav(tone(0.3)), wav(tone(0.5, hertz=900))]
GRID = layers.GridEncoder(8, num_cells=6)
SOUND = layers.PyramidalEncoder(8, num_layers=2)


def image(seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), "uint8")
    return tf.io.encode_png(pixels).numpy()


# Kind of input -> preprocessor, layer that reads it, inputs.
SOURCES = {
    "features": (data.FeaturePreprocessor(2, 3, 3), GRID, list(CELLS)),
    "image": (data.ImagePreprocessor(2, 2, 3), GRID, [image(1), image(2)]),
    "frames": (
        data.FramePreprocessor(3),
        SOUND,
        [CELLS.reshape(12, 3), CELLS[0]],
    ),
    "audio": (data.AudioPreprocessor(8000, num_mels=8), SOUND, SPEECH),
}


def spread(model):
    """Answers that are no near ties."""
    for i, weight in enumerate(model.trainable_variables):
        values = tf.random.stateless_normal(weight.shape, seed=(0, i))
        weight.assign(0.5 * values)
    return model


def generator_of(kind, tokenizer):
    preprocessor, layer, inputs = SOURCES[kind]
    model = models.Transformer(
        None,
        tokenizer.vocab_size,
        source_dim=preprocessor.num_features,
        source_layer=layer,
        num_encoder_layers=1,
        num_decoder_layers=1,
        **SIZES,
    )
    search = decoding.GreedySearch()
    generator = Generator(
        spread(model), preprocessor, tokenizer, search, max_length=8
    )
    return generator, inputs


@pytest.fixture(scope="module")
def transformer(generators):
    """The heads are those of any search; this one is traced soonest."""
    return generators["transformer"].with_search(decoding.GreedySearch())


@pytest.mark.parametrize("part", [slow("encoder"), slow("cross"), "decoder"])
def test_rows_are_distributions_over_the_tokens(transformer, part):
    texts = ["the cat", "12 bones and a dog"]
    found = head_attention(transformer, texts, part, head=1)
    for attention in found:
        queries, keys = attention.target_tokens, attention.source_tokens
        assert attention.weights.shape == (len(queries), len(keys))
        np.testing.assert_allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
        if part != "cross":
            assert queries == keys
        if part == "decoder":  # no query sees what follows it
            assert queries[0] == "<s>"
            assert not np.triu(attention.weights, 1).any()
    assert found[0]._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_mean_of_the_heads_is_what_explain_shows(generators):
    generator = generators["transformer"]
    heads = [
        head_attention(generator, ["the cat"], "cross", head=head)[0].weights
        for head in range(generator.model.num_heads)
    ]
    [shown] = generator.predictor().attention(["the cat"])
    np.testing.assert_allclose(np.mean(heads, axis=0), shown.weights, atol=1e-5)


@pytest.mark.parametrize(
    "place", [{"part": "middle"}, {"block": 7}, {"head": 9}]
)
def test_a_head_that_is_not_there(transformer, place):
    [value] = place.values()
    with pytest.raises(UserError, match=f"Received: .*{value}"):
        head_attention(transformer, ["a"], **place)


def test_a_model_without_heads(generators):
    with pytest.raises(UserError, match="no attention heads"):
        head_attention(generators["lstm"], ["a"])


@pytest.mark.parametrize(
    "kind",
    [
        # That the mean of the heads is shown, texts above show as well.
        slow("features"),
        slow("image"),
        slow("frames"),
        slow("audio"),
    ],
)
def test_what_is_no_text_has_heads_too(kind, tokenizers):
    """The mean of the heads is what `attention` shows, with its picture."""
    generator, inputs = generator_of(kind, tokenizers[1])
    predictor = generator.predictor()
    heads = [
        predictor.head_attention(inputs, "cross", head=head)
        for head in range(2)
    ]
    for shown, *found in zip(predictor.attention(inputs), *heads, strict=True):
        weights = [attention.weights for attention in found]
        np.testing.assert_allclose(
            np.mean(weights, 0), shown.weights, atol=1e-5
        )
        for attention in found:
            assert attention.source_tokens == shown.source_tokens
            assert attention.target_tokens == shown.target_tokens
            assert attention.picture == shown.picture
            assert attention._repr_png_().startswith(b"\x89PNG")
    for own in predictor.head_attention(inputs, "encoder"):
        assert own.source_tokens == own.target_tokens
        np.testing.assert_allclose(own.weights.sum(axis=1), 1, atol=1e-5)
    decoder = predictor.head_attention(inputs, "decoder")
    assert [attention.picture for attention in decoder] == [None, None]


@pytest.mark.slow
def test_prompt_and_answer_are_one_sequence():
    tokenizer = data.Tokenizer.train(["abcdefgh \n"], 99, "char", verbatim=True)
    model = models.TransformerLM(
        tokenizer.vocab_size, num_layers=2, max_length=32, **SIZES
    )
    generator = Generator(
        spread(model),
        data.PromptPreprocessor(tokenizer, 8),
        tokenizer,
        decoding.GreedySearch(length_penalty=0.0),
        max_length=6,
    )
    predictor = generator.predictor()
    long, short = predictor.head_attention(["abcab", "a"], "decoder", head=1)
    [alone] = predictor.head_attention(["a"], "decoder", head=1)
    assert long.target_tokens[:6] == ["<s>", *"abcab"]
    assert short.target_tokens == alone.target_tokens
    np.testing.assert_allclose(short.weights, alone.weights, atol=1e-5)
    for attention in (long, short):
        assert attention.source_tokens == attention.target_tokens
        assert not np.triu(attention.weights, 1).any()
        np.testing.assert_allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
    with pytest.raises(
        UserError, match=r"'decoder': 2.*Received: part='cross'"
    ):
        predictor.head_attention(["a"], "cross")


def test_heads_of_a_classifier(tokenizers):
    tokenizer = tokenizers[0]
    model = models.TransformerClassifier(
        tokenizer.vocab_size, 2, num_layers=2, **SIZES
    )
    preprocessor = data.DocumentPreprocessor(tokenizer)
    classifier = Classifier(spread(model), preprocessor, ("fire", "flood"))
    predictor = classifier.predictor()
    texts = ["The cat sat. A dog ate.", "The dog"]
    for attention in predictor.head_attention(texts, block=0, head=1):
        pieces = attention.target_tokens
        assert attention.source_tokens == pieces
        assert attention.weights.shape == (len(pieces), len(pieces))
        np.testing.assert_allclose(attention.weights.sum(1), 1, atol=1e-5)
    with pytest.raises(UserError, match=r"'encoder': 2.*Received: .*head=2"):
        predictor.head_attention(texts, head=2)


@pytest.mark.slow
def test_an_export_has_none(loaded_exports):
    with pytest.raises(UserError, match="load its run"):
        loaded_exports["lstm"].head_attention(["a"])


@pytest.mark.slow
def test_a_run_that_is_loaded(generators, run_of):
    generator = generators["transformer"]
    predictor = kseq.load(run_of(generator))
    [found] = predictor.head_attention(["the cat"], "encoder", head=1)
    [expected] = head_attention(generator, ["the cat"], "encoder", head=1)
    assert found.source_tokens == expected.source_tokens
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)
