"""Transformers of kseq as Marian models."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from kseq import cli, data, decoding, models, serving
from kseq.conversion import export_marian, read_marian
from kseq.user_error import UserError
from tests.commands.saved_run import saved_run
from tests.conversion import marian_oracle

LINES = ["eins zwei drei", "vier fünf grüne Katzen", "rote Hunde schlafen"]
LINES += ["one two three", "four five green cats", "red dogs sleep"]


@pytest.fixture(scope="module")
def tokenizers():
    return [
        data.Tokenizer.train(LINES, 288, "bpe"),
        data.Tokenizer.train(LINES, 290, "unigram"),
    ]


def translator(source, target, **options):
    """One with random weights, also of norms and biases."""
    options = {
        "norm": "post",
        "share_embeddings": source is target,
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
    } | options
    model = models.Transformer(
        *(source.vocab_size, target.vocab_size),
        model_dim=8,
        ffn_dim=12,
        num_heads=2,
        **options,
    )
    random = np.random.default_rng(1)
    for variable in model.variables:
        if variable.dtype == "float32":
            variable.assign(random.normal(size=variable.shape, scale=0.5))
    return serving.Generator(
        model,
        data.TextPreprocessor(source, 32),
        target,
        decoding.BeamSearch(3, 0.7, penalty_offset=0.0),
        max_length=40,
    )


def parts_of(tokenizer):
    """What a SentencePiece model does, without values that are defaults."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    pieces = [(each.piece, each.score, each.type) for each in proto.pieces]
    specs = proto.trainer_spec, proto.normalizer_spec, proto.denormalizer_spec
    return pieces, tokenizer.vocab_size, *map(str, specs)


def check_same(generator, other):
    """All that a conversion keeps is the same to the bit."""
    values = [each.numpy() for each in generator.model.variables]
    others = [each.numpy() for each in other.model.variables]
    if not generator.model.output_bias:
        np.testing.assert_array_equal(others.pop(), 0.0)
    for one, two in zip(values, others, strict=True):
        np.testing.assert_array_equal(one, two)
    for side, tokenizer in generator.tokenizers.items():
        assert parts_of(other.tokenizers[side]) == parts_of(tokenizer)
    assert other.search == generator.search
    assert other.max_length == generator.max_length


@pytest.mark.parametrize("is_shared", [True, False])
def test_what_is_written_is_read_to_the_bit(tokenizers, tmp_path, is_shared):
    source, target = tokenizers
    options = {"activation": "gelu"} if is_shared else {"output_bias": True}
    generator = translator(source, source if is_shared else target, **options)
    path = export_marian(generator, tmp_path / "marian")
    assert (path / "target_vocab.json").is_file() != is_shared
    check_same(generator, read_marian(path).generator)
    for wrong, message in (
        (path, "marian exists; give a new path"),
        (path / "config.json" / "none", "cannot be written: Not a directory"),
    ):
        with pytest.raises(UserError, match=message):
            export_marian(generator, wrong)
    assert [*tmp_path.iterdir()] == [path]


def test_a_model_that_was_converted_is_written_again(marian, tmp_path):
    """With its languages, and the pieces that its vocabulary lacks."""
    generator = read_marian(marian / "trained").generator
    path = export_marian(generator, tmp_path / "again")
    vocabulary = json.loads((path / "vocab.json").read_text("utf-8"))
    assert {">>eng<<", ">>fra<<"} < vocabulary.keys()
    check_same(generator, read_marian(path).generator)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "pre"}, "norm='pre' instead of 'post'"),
        ({"activation": "swiglu"}, "activation='swiglu' instead of 'relu' or"),
        (
            {"positions": "learned"},
            "positions='learned' instead of 'sinusoidal'",
        ),
        ({"normalization": "rms"}, "normalization='rms' instead of 'layer'"),
        ({"tie_output": False}, "tie_output=False instead of True"),
        ({"num_kv_heads": 1}, "num_kv_heads=1 instead of None or 2"),
        ({"window": 2}, "windows of self-attention"),
        ({"norm_epsilon": 1e-3}, "norm_epsilon=0.001 instead of 1e-05"),
        ({"source_end": False}, "source_end=False instead of True"),
    ],
)
def test_what_marian_does_not_compute(tokenizers, tmp_path, options, message):
    generator = translator(*tokenizers, **options)
    with pytest.raises(
        UserError, match=f"Marian runs only text-to-text Trans.*{message}"
    ):
        export_marian(generator, tmp_path / "marian")
    assert not [*tmp_path.iterdir()]


def test_the_command(tokenizers, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run = saved_run(translator(*tokenizers), tmp_path / "runs" / "tiny")
    command = ["export", str(run), "--format", "marian"]
    assert cli.main(command) == 0
    assert capfd.readouterr().out == "marian_models/tiny\n"
    assert (tmp_path / "marian_models/tiny/model.safetensors").is_file()
    assert cli.main(command) == 2
    assert "marian_models/tiny exists" in capfd.readouterr().err
    assert cli.main([*command, "--quantize", "int8"]) == 2
    assert "--format marian has no --quantize" in capfd.readouterr().err
    for words, message in (
        (["--sample"], "--format marian has no --sample"),
        (["--groups", "2"], "--format marian has no --groups"),
        (
            ["--format", "ctranslate2", "--patience", "1"],
            "--format ctranslate2 has no --patience",
        ),
        (
            ["--format", "argos", "--languages", "de", "en", "--greedy"],
            "--format argos has no --greedy",
        ),
    ):
        assert cli.main([*command, *words]) == 2
        assert message in capfd.readouterr().err


@pytest.mark.slow  # needs PyTorch and transformers, which are the oracle
@pytest.mark.parametrize("is_shared", [True, False])
def test_transformers_computes_the_same(tokenizers, tmp_path, is_shared):
    python = os.environ.get("ORACLE_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import transformers"]).returncode:
        pytest.skip("needs PyTorch and transformers")
    source, target = tokenizers
    generator = translator(source, source if is_shared else target)
    path = export_marian(generator, tmp_path / "marian")
    subprocess.run([python, marian_oracle.__file__, str(path)], check=True)
    for line in json.loads((path / "expected.json").read_text("utf-8")):
        if not line["source"].strip() or ">>" in line["source"]:
            continue  # Marian answers blank texts, and has no such language
        for side in ("source", "target"):
            ids, _ = generator.tokenizers[side].tokenize_with_end([line[side]])
            if line[side] == line[side].strip():
                assert ids.to_list() == [line[f"{side}_ids"]]
        logits = generator.model(
            {
                "source_ids": np.array([line["source_ids"]]),
                "target_ids": np.array([[2, *line["target_ids"][:-1]]]),
            }
        )
        np.testing.assert_allclose(logits[0], line["logits"], atol=1e-4)
