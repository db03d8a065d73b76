import argparse
import importlib
import sys

import keras
import pytest
import tensorflow as tf

from kseq import cli, data, decoding, models, runs, serving, training
from kseq.commands.open_predictor import chosen_search, open_predictor
from kseq.data.documents.dispatch_reports import dispatch_reports
from tests.commands.saved_run import Config, saved_run
from tests.commands.some_lines import LEARNT


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A slow machine prints no progress among the messages."""
    monkeypatch.setattr("kseq.terminal._FIRST", 600)


@pytest.fixture(scope="session")
def opened():
    """What commands have opened, the newest last."""
    return {}


@pytest.fixture(autouse=True)
def open_once(opened, monkeypatch):
    """What one command has opened the next one does not open again.

    Tracing a search takes seconds. Options that choose the same search open
    the same.
    """

    def open_or_find(options):
        ensemble = getattr(options, "ensemble", None) or ()
        key = (
            *map(str, (options.path, *ensemble)),
            getattr(options, "weights", None),
            repr(chosen_search(options)),
        )
        if key not in opened:
            opened[key] = open_predictor(options)
        opened[key].batch_size = getattr(options, "batch_size", None)
        return opened[key]

    for name in ("predict", "score", "evaluate", "explain", "export", "chat"):
        module = importlib.import_module(f"kseq.commands.{name}")
        monkeypatch.setattr(module, "open_predictor", open_or_find)
    return open_or_find


@pytest.fixture
def load(open_once):
    """`kseq.load`, unless a command has opened the same before."""
    return lambda path: open_once(argparse.Namespace(path=path))


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run that has learnt five lines by heart."""
    keras.utils.set_random_seed(1)
    path = tmp_path_factory.mktemp("runs") / "tiny"
    run = runs.RunDirectory(path)
    run.start(Config())
    tokenizer = data.Tokenizer.train(LEARNT, 270, "bpe")
    preprocessor = data.TextPreprocessor(tokenizer)
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
    search = decoding.BeamSearch(beam_size=3)
    run.save(serving.Generator(model, preprocessor, tokenizer, search))
    pairs = tf.data.Dataset.from_tensor_slices((LEARNT, LEARNT))
    batches = data.training_batches(
        data.tokenize_pairs(pairs, preprocessor, tokenizer),
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
def documents():
    return dispatch_reports("train", size=40)


@pytest.fixture(scope="session")
def classifier_run(tmp_path_factory, documents):
    """A run of an untrained classifier, whose answers are no near ties."""
    keras.utils.set_random_seed(1)
    labels = ("ambulance", "fire", "flood", "police")
    preprocessor = data.DocumentPreprocessor.train(documents, 400)
    model = models.FlatAttention(
        400, 4, embedding_dim=8, units=4, attention_units=4
    )
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    served = serving.Classifier(model, preprocessor, labels)
    return saved_run(served, tmp_path_factory.mktemp("runs") / "labels")


@pytest.fixture(scope="session")
def export(run):
    path = run.parent / "saved_models" / "tiny"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def classifier_export(classifier_run):
    path = classifier_run.parent / "saved_models"
    assert cli.main(["export", str(classifier_run), "--to", str(path)]) == 0
    return path


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Runs a command with an input; gives its output and its notes."""

    def call(*arguments, text=b"", code=0):
        source = tmp_path / "input"
        source.write_bytes(text)
        capfd.readouterr()
        with open(source) as file:
            monkeypatch.setattr(sys, "stdin", file)
            found = cli.main([str(argument) for argument in arguments])
        output, notes = capfd.readouterr()
        assert found == code, notes
        return output, notes

    return call


@pytest.fixture
def predict(call):
    """Runs `kseq predict` with an input; gives its lines, and its notes."""

    def predict(path, text, *options, code=0):
        answers, notes = call("predict", path, *options, text=text, code=code)
        return answers.removesuffix("\n").split("\n"), notes

    return predict


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
