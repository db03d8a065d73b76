"""Models for LiteRT, run by the Python of their README."""

import fcntl
import json
import os
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq import data, models
from kseq.data.documents.dispatch_reports import dispatch_reports
from kseq.decoding import BeamSearch, GreedySearch, MinLength
from kseq.layers import BahdanauAttention
from kseq.serving import Classifier, Generator
from kseq.serving.litert_export import export_litert
from kseq.user_error import DiskError, UserError
from tests.slow import slow

pytest.importorskip("ai_edge_litert")

TEXTS = [
    *("the cat", "a dog ate 12 bones, a cat ate 3 fish", "日本語", ""),
    *(" the\r cat\t", "\ufdd0 \u2581", "\u3000\u200b", "nul\0x", "x</s>"),
    "the cat sat " * 40,
]


def functions_of(folder, monkeypatch):
    """What the README defines."""
    monkeypatch.chdir(folder)
    [code] = re.findall(
        "```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.S
    )
    assert "kseq" not in code and "tensorflow" not in code
    names = {}
    exec(code, names)
    return names


def answers_of(generator, texts):
    found = generator.signatures["serving_default"](text=tf.constant(texts))
    return [text.decode() for text in found["text"].numpy()]


@pytest.fixture(scope="module")
def greedy(generators):
    return generators["transformer"].with_search(GreedySearch())


@pytest.fixture(scope="module")
def folder(greedy, tmp_path_factory):
    return export_litert(greedy, tmp_path_factory.mktemp("litert") / "model")


def test_answers_are_those_of_kseq(greedy, folder, monkeypatch, capfd):
    names = functions_of(folder, monkeypatch)
    assert "Truncate" not in capfd.readouterr().err
    answers = [names["answer"](text) for text in TEXTS]
    assert answers == answers_of(greedy, TEXTS)
    assert len(set(answers)) > 3
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "config.json", "model.tflite"),
        *("source.model", "target.model"),
    }
    assert json.loads((folder / "config.json").read_text())["max_length"] == 32


SIZES = {
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "model_dim": 8,
    "ffn_dim": 16,
    "num_heads": 2,
}


def recurrent(*sizes):
    return models.LSTMSeq2Seq(
        *sizes,
        embedding_dim=8,
        units=8,
        attention=BahdanauAttention(8),
        copy=True,
    )


MODELS = {
    "recurrent": recurrent,
    "convolutional": lambda *sizes: models.ConvSeq2Seq(
        *sizes, embedding_dim=8, units=8
    ),
    "rotary": lambda *sizes: models.Transformer(
        *sizes,
        **SIZES,
        positions="rotary",
        activation="swiglu",
        normalization="rms",
        num_kv_heads=1,
        window=3,
    ),
    "half": lambda *sizes: models.Transformer(
        *sizes, **SIZES, positions="relative", dtype="mixed_bfloat16"
    ),
}


@pytest.mark.parametrize("name", [slow(name) for name in MODELS])
@pytest.mark.parametrize(
    "search", [BeamSearch(3), GreedySearch(constraints=[MinLength(3)])]
)
def test_other_models_and_searches(
    name, search, tokenizers, tmp_path, monkeypatch
):
    source, _ = tokenizers
    keras.utils.set_random_seed(1)
    # With one vocabulary, from which a model can copy.
    model = MODELS[name](source.vocab_size, source.vocab_size)
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape, stddev=0.5))
    preprocessor = data.TextPreprocessor(source, 32)
    generator = Generator(model, preprocessor, source, search, max_length=32)
    folder = export_litert(generator, tmp_path / "model")
    if name == "half":
        assert model.compute_dtype == "bfloat16"
        config = model.get_config() | {"dtype": "float32"}
        precise = models.Transformer.from_config(config)
        precise.set_weights(model.get_weights())
        generator = Generator(
            precise, preprocessor, source, search, max_length=32
        )
    names = functions_of(folder, monkeypatch)
    answers = [names["answer"](text) for text in TEXTS]
    assert answers == answers_of(generator, TEXTS)


@pytest.mark.parametrize(
    ("quantize", "most"), [slow("int8", 0.45), slow("float16", 0.6)]
)
def test_fewer_bits(quantize, most, tokenizers, tmp_path, monkeypatch):
    source, target = tokenizers
    model = models.Transformer(
        *(source.vocab_size, target.vocab_size),
        **{**SIZES, "model_dim": 64, "ffn_dim": 512},
    )
    generator = Generator(
        model, data.TextPreprocessor(source, 32), target, GreedySearch()
    )
    folder = export_litert(generator, tmp_path / "few", quantize)
    whole = export_litert(generator, tmp_path / "whole")
    few, whole = (
        (each / "model.tflite").stat().st_size for each in (folder, whole)
    )
    assert few < most * whole
    assert isinstance(functions_of(folder, monkeypatch)["answer"]("a"), str)


@pytest.mark.parametrize(
    "kind",
    [slow("hierarchical"), slow("flat"), slow("transformer")],
)
@pytest.mark.parametrize("in_lines", [True, False])
def test_classifiers(kind, in_lines, tmp_path, monkeypatch):
    reports = dispatch_reports("train", size=50)
    reports = reports._replace(in_lines=in_lines)
    preprocessor = data.DocumentPreprocessor.train(
        reports, 400, max_sentences=5, max_pieces=9
    )
    sizes = {"embedding_dim": 6, "units": 4, "attention_units": 3}
    keras.utils.set_random_seed(1)
    model = {
        "hierarchical": lambda: models.HierarchicalAttention(400, 3, **sizes),
        "flat": lambda: models.FlatAttention(400, 3, ngrams=3, **sizes),
        "transformer": lambda: models.TransformerClassifier(
            400, 3, num_layers=1, model_dim=8, ffn_dim=8, num_heads=2
        ),
    }[kind]()
    for weight in [*model.trainable_variables, *model.logits.weights]:
        weight.assign(keras.random.normal(weight.shape))
    served = Classifier(model, preprocessor, ("fire", "größer", "x"), 2.0)
    folder = export_litert(served, tmp_path / "model")
    probabilities = functions_of(folder, monkeypatch)["probabilities"]
    texts = [
        *("", "fire<br>at Mr. Smith's\r\nhouse", "a\tb", "\u3000", "a\r"),
        *(" one\n\ntwo \n" * 5, "many pieces in one sentence " * 20),
    ]
    expected = served.signatures["serving_default"](text=tf.constant(texts))
    found = [probabilities(text) for text in texts]
    assert list(found[0]) == ["fire", "größer", "x"]
    rows = slice(None) if in_lines else slice(3, None)
    np.testing.assert_allclose(
        [list(each.values()) for each in found][rows],
        expected["probabilities"][rows],
        atol=1e-5,
    )


def with_prompts(greedy):
    preprocessor = data.PromptPreprocessor(greedy.tokenizer)
    return Generator(greedy.model, preprocessor, greedy.tokenizer)


def with_stop(greedy):
    return Generator(
        greedy.model, greedy.preprocessor, greedy.tokenizer, stop=["x"]
    )


def with_strings(greedy):
    """A constraint with an operation that LiteRT does not have."""

    def constraint(log_probs, ids):
        size = tf.strings.length(tf.strings.as_string(ids[:, :1]))
        return log_probs + tf.cast(tf.reduce_max(size), tf.float32)

    return greedy.with_search(GreedySearch(constraints=[constraint]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (with_prompts, "a Generator with a PromptPreprocessor"),
        (with_stop, "not support stop strings"),
        slow(with_strings, r"refuses this model. 'tf\.AsString' op"),
    ],
)
def test_what_it_cannot_write(make, message, greedy, tmp_path):
    with pytest.raises(UserError, match=message):
        export_litert(make(greedy), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def written(monkeypatch):
    """Without the conversion, which takes seconds."""
    monkeypatch.setattr(
        "kseq.serving.litert_export._convert", lambda *arguments: b"model"
    )


def test_nothing_is_overwritten_or_left_half_written(
    greedy, tmp_path, monkeypatch, written
):
    (tmp_path / "model").symlink_to("nowhere")
    with pytest.raises(UserError, match="model exists"):
        export_litert(greedy, tmp_path / "model")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="Not a directory"):
        export_litert(greedy, tmp_path / "file" / "model")

    hidden = tmp_path / ".other.partial"
    hidden.mkdir()
    (hidden / "of a killed export").touch()
    running = os.open(hidden, os.O_RDONLY)
    fcntl.flock(running, fcntl.LOCK_EX)
    with pytest.raises(UserError, match="is being written by another export"):
        export_litert(greedy, tmp_path / "other")
    os.close(running)

    def full(self, *_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(DiskError, match="No space left"):
            export_litert(greedy, tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"model", "file"}

    hidden.mkdir()
    (hidden / "of a killed export").touch()
    export_litert(greedy, tmp_path / "other")
    assert not (tmp_path / "other" / "of a killed export").exists()
    assert not hidden.exists()
