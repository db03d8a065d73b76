import dataclasses
import functools
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import (
    TextPreprocessor,
    Tokenizer,
    tokenize_pairs,
)
from kseq.layers import LuongAttention
from kseq.models import (
    ExactModel,
    FlatAttention,
    LSTMSeq2Seq,
    Transformer,
    TransformerTagger,
)
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import write_checkpoint
from kseq.training import (
    MetricsLog,
    freeze,
    pretrain,
    pretrain_classifier,
    pretrain_translator,
    set_seed,
)

STEPS = 6


@dataclasses.dataclass(frozen=True)
class Config:
    model: str = "flat"
    batch_pieces: int = 256
    pretraining_steps: int = STEPS
    batch_tokens: int = 256
    max_length: int = 64
    learning_rate: float = 0.003
    warmup_steps: int = 100
    seed: int = 1


LINES = [f"{n} of these, and {n + 1} of those." for n in range(20)]


def flat():
    return FlatAttention(
        30, 2, embedding_dim=6, units=4, attention_units=3, dropout=0.3
    )


def documents():
    draw = np.random.default_rng(0)
    text = draw.integers(4, 30, (5, 4, 20), "int32")
    return tf.RaggedTensor.from_tensor(text, ragged_rank=2)


def seq2seq():
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2}
    shared = {"dropout": 0.3, "share_embeddings": True}
    return Transformer(290, 290, **layers, **sizes, **shared)


def copying():
    sizes = {"embedding_dim": 8, "units": 8, "dropout": 0.3}
    attention = LuongAttention()
    return LSTMSeq2Seq(290, 290, **sizes, attention=attention, copy=True)


def text_pairs():
    tokenizer = Tokenizer.train(LINES, 290)
    pairs = tf.data.Dataset.from_tensor_slices((LINES, LINES))
    preprocessor = TextPreprocessor(tokenizer)
    return tokenize_pairs(pairs, preprocessor, tokenizer), tokenizer


def make_model(kind=flat):
    set_seed(1, deterministic=False)
    model = kind()
    model.compile("adam")
    return model


def pretrained(path, kind=flat, model=None, steps=STEPS):
    run = RunDirectory(path)
    run.start(Config())
    model = model or make_model(kind)
    run.save_model(model)
    config = Config(pretraining_steps=steps)
    if kind is flat:
        pretrain_classifier(run, model, documents(), config)
    else:
        pretrain_translator(run, model, *text_pairs(), config)
    return model.get_weights()


def stop_after(monkeypatch, steps):
    """Asks the process to end, as a scheduler does."""
    written = MetricsLog.on_train_batch_end

    def and_stop(log, batch, logs=None):
        written(log, batch, logs)
        if batch + 1 == steps:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(MetricsLog, "on_train_batch_end", and_stop)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "learned"), [(flat, 7), (seq2seq, None), (copying, None)]
)
def test_resumes_where_it_was_stopped(
    kind, learned, tmp_path, monkeypatch, capsys
):
    """To the bit. Of a classifier, only embedding and RNN change."""
    before = make_model(kind).get_weights()
    whole = pretrained(tmp_path / "whole", kind)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        stop_after(patch, 2)
        pretrained(tmp_path / "cut", kind)
    assert "Stopped after step 2" in capsys.readouterr().err
    cut = pretrained(tmp_path / "cut", kind)
    again = pretrained(tmp_path / "cut", kind)

    changed = [
        not np.array_equal(*pair) for pair in zip(before, whole, strict=True)
    ]
    learned = len(whole) if learned is None else learned
    assert changed == [True] * learned + [False] * (len(whole) - learned)
    for weights in (cut, again):
        for one, other in zip(weights, whole, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("steps", "warmup_steps", "peak"),
    [(6, 2, 2), (6, 100, 3), (1, 100, 0), (600, 300, 300), (600, 999, 375)],
)
def test_the_learning_rate_ends_at_zero(
    tmp_path, monkeypatch, steps, warmup_steps, peak
):
    """600 steps are 750: three times 250."""
    fitted = []

    def fit(learner, batches, checkpoints, *, steps, **_):
        fitted.append((learner.optimizer._learning_rate, steps))

    monkeypatch.setitem(pretrain.__globals__, "fit", fit)
    run = RunDirectory(tmp_path)
    run.start(Config())
    model = make_model()
    run.save_model(model)
    pretrain(
        *(run, model, None, steps), learning_rate=0.5, warmup_steps=warmup_steps
    )
    [(schedule, total)] = fitted
    rates = [float(schedule(step)) for step in range(total + 1)]
    assert max(rates) == rates[peak] == 0.5
    assert rates[-1] == pytest.approx(0, abs=1e-7)
    assert rates[-2] > 0


def test_nothing_is_left_to_do_once_the_classifier_trains(tmp_path):
    last = tmp_path / "run" / "checkpoints" / "last"
    run = RunDirectory(tmp_path / "run")
    run.start(Config())
    run.save_model(make_model())
    write_checkpoint(last, 3, 5, vars=[tf.Variable(1.0)])
    weights = pretrained(tmp_path / "run")
    for one, other in zip(weights, make_model().get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not (tmp_path / "run" / "pretraining").exists()


@pytest.mark.parametrize("kind", [seq2seq, copying])
def test_a_model_that_restores_texts_keeps_what_it_learned(
    kind, tmp_path, monkeypatch
):
    """And what is frozen stays as it was."""
    # Tracing would take longer than the steps.
    eagerly = functools.partialmethod(ExactModel.compile, run_eagerly=True)
    monkeypatch.setattr(ExactModel, "compile", eagerly)
    model = make_model(kind)
    freeze(model, ["encoder_0"])
    names = [weight.path for weight in model.weights]
    before = model.get_weights()
    after = pretrained(tmp_path / "run", kind, model, steps=3)
    changed = {
        name
        for name, *pair in zip(names, before, after, strict=True)
        if not np.array_equal(*pair)
    }
    assert changed == {name for name in names if "encoder_0/" not in name}
    assert changed < set(names)


def test_another_start_deletes_it(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.start(Config())
    run.save_model(make_model())
    assert run.pretraining == tmp_path / "run" / "pretraining"
    write_checkpoint(
        run.pretraining / "checkpoints" / "last", 3, 5, vars=[tf.Variable(1.0)]
    )
    run = RunDirectory(tmp_path / "run")
    run.start(Config(), overwrite=True)
    assert run.pretraining.is_dir()
    run.save_model(make_model())
    assert not (tmp_path / "run" / "pretraining").exists()


def test_another_model_is_refused(tmp_path):
    model = TransformerTagger(
        30, 2, num_layers=1, model_dim=8, ffn_dim=8, num_heads=2
    )
    with pytest.raises(RunError, match="needs a classifier of documents"):
        pretrain(RunDirectory(tmp_path), model, None, STEPS)
