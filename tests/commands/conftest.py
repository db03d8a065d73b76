import dataclasses
import sys

import keras
import pytest
import tensorflow as tf

from kseq import cli, data, models, runs, training
from kseq.commands import predict as predict_command
from kseq.commands.open_model import open_model
from tests.commands.some_lines import LEARNT


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1
    beam_size: int = 3


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run that has learnt five lines by heart."""
    keras.utils.set_random_seed(1)
    path = tmp_path_factory.mktemp("runs") / "tiny"
    run = runs.RunDirectory(path)
    run.start(Config())
    tokenizer = data.Tokenizer.train(LEARNT, 270, "bpe")
    run.save_tokenizers(tokenizer, tokenizer)
    model = models.Transformer(
        tokenizer.vocab_size,
        tokenizer.vocab_size,
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=32,
        ffn_dim=32,
        num_heads=2,
    )
    model.compile(keras.optimizers.Adam(0.005))
    run.save_model(model)
    batches = data.training_batches(
        tf.data.Dataset.from_tensor_slices((LEARNT, LEARNT)),
        tokenizer,
        tokenizer,
        batch_tokens=64,
        max_length=32,
        seed=1,
    )
    model.fit(
        batches,
        steps_per_epoch=100,
        epochs=2,
        shuffle=False,
        verbose=0,
        callbacks=[training.Checkpoints(run, monitor="loss", mode="min")],
    )
    return path


@pytest.fixture(scope="session")
def export(run):
    path = run.parent / "saved_models" / "tiny"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


@pytest.fixture
def predict(tmp_path, monkeypatch, capfd):
    """Runs `kseq predict` with an input; gives its lines, and its notes."""
    translators = {}

    def open_once(options):
        names = ("path", "weights", "beam_size", "length_penalty")
        key = tuple(getattr(options, name) for name in names)
        if key not in translators:
            translators[key] = open_model(options)
        return translators[key]

    def call(path, text, *options, code=0):
        source = tmp_path / "input"
        source.write_bytes(text)
        capfd.readouterr()
        with open(source) as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert cli.main(["predict", str(path), *options]) == code
        answers, notes = capfd.readouterr()
        return answers.removesuffix("\n").split("\n"), notes

    monkeypatch.setattr(predict_command, "open_model", open_once)
    return call


@pytest.fixture
def refused(capfd):
    """Runs a command that must fail; gives its one message."""

    def call(*arguments):
        capfd.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
        output, message = capfd.readouterr()
        assert (code, output) == (2, "")
        assert message.startswith("kseq")
        assert "Traceback" not in message
        return message

    return call
