"""How much of a bare TensorFlow step `model.fit` keeps.

    python tests/benchmarks/training_step.py [--dtype mixed_bfloat16]

A Transformer of 4 + 4 layers, d 128, on batches of 256 x 16 tokens. In turn,
and several times over: the bare step of bare_transformer.py on one batch that
is there already; `model.fit` of kseq with its pipeline (text on disk,
tokenizer, buckets), metrics and log; and `model.fit` of kseq's model with
keras.layers.MultiHeadAttention inside. Prints target tokens per second,
padding included, and ratios of medians.
"""

import argparse
import itertools
import random
import statistics
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from bare_transformer import BareTransformer

from kseq.data import (
    ParallelText,
    TextPreprocessor,
    Tokenizer,
    tokenize_pairs,
    training_batches,
)
from kseq.models import Transformer
from kseq.process import start_keras
from kseq.runs import RunDirectory
from kseq.training import MetricsLog

SIZE = {"layers": 4, "dim": 128, "ffn_dim": 256, "heads": 4, "dropout": 0.3}
VOCAB, ROWS, LENGTH = 8000, 256, 16


class KerasAttention(keras.layers.Layer):
    """keras.layers.MultiHeadAttention with the calls of kseq's."""

    def __init__(self, num_heads, key_dim, dropout, **kwargs):
        for name in ("window", "rotary"):
            kwargs.pop(name, None)
        super().__init__(**kwargs)
        self.attention = keras.layers.MultiHeadAttention(
            num_heads, key_dim, dropout=dropout, dtype=self.dtype_policy
        )

    def build(self, query_shape, memory_shape=None):
        shape = memory_shape or query_shape
        self.attention.build(query_shape, shape, shape)

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        causal=False,
        projected_memory=None,
        cache=None,
        return_weights=False,
        training=None,
    ):
        return self.attention(
            query,
            query if memory is None else memory,
            attention_mask=None
            if memory_mask is None
            else memory_mask[:, None],
            use_causal_mask=causal,
            training=training,
        )


def build(dtype):
    model = Transformer(
        VOCAB,
        VOCAB,
        num_encoder_layers=SIZE["layers"],
        num_decoder_layers=SIZE["layers"],
        model_dim=SIZE["dim"],
        ffn_dim=SIZE["ffn_dim"],
        num_heads=SIZE["heads"],
        dropout=SIZE["dropout"],
        share_embeddings=True,
        dtype=dtype,
    )
    model.compile(
        keras.optimizers.Adam(1e-3, beta_2=0.98, epsilon=1e-9),
        label_smoothing=0.1,
        clip_norm=1.0,
    )
    return model


def with_keras_attention(dtype):
    from kseq.layers import transformer_decoder_block as decoder
    from kseq.layers import transformer_encoder_block as encoder

    ours = encoder.MultiHeadAttention
    encoder.MultiHeadAttention = decoder.MultiHeadAttention = KerasAttention
    try:
        return build(dtype)
    finally:
        encoder.MultiHeadAttention = decoder.MultiHeadAttention = ours


def text(folder):
    """Sentences of 14 or 15 words, of 3,000 words: up to 16 tokens."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklm", k=5)) for _ in range(3000)]
    for name in ("source", "target"):
        lines = [
            " ".join(draw.choices(words, k=draw.choice((14, 15))))
            for _ in range(20_000)
        ]
        (folder / name).write_text("\n".join(lines) + "\n")
    return ParallelText(folder / "source", folder / "target")


class Clock(keras.callbacks.Callback):
    """Places a second, over all steps but the first few."""

    def __init__(self, skip):
        super().__init__()
        self.skip = skip

    def on_train_batch_end(self, batch, logs=None):
        if batch == self.skip - 1:
            self.start = time.perf_counter()
            self.before = self._places(batch + 1, logs)
        self.end = time.perf_counter()
        self.places = self._places(batch + 1, logs)

    def _places(self, steps, logs):
        """Tokens are the mean over the steps, padding over the places."""
        tokens = float(logs["tokens"]) * steps
        return tokens / (1 - float(logs["padding"]))

    def speed(self):
        return (self.places - self.before) / (self.end - self.start)


def fit(model, batches, steps, run):
    clock = Clock(skip=5)
    model.fit(
        batches,
        steps_per_epoch=steps + 5,
        callbacks=[MetricsLog(run, steps), clock],
        shuffle=False,
        verbose=0,
    )
    return clock.speed()


def bare(model, batch, steps):
    for _ in range(5):
        model.step(*batch)
    start = time.perf_counter()
    for _ in range(steps):
        loss = model.step(*batch)
    float(loss)
    return steps * ROWS * LENGTH / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    start_keras()  # as `kseq train` does

    rng = np.random.default_rng(0)
    ids = rng.integers(4, VOCAB, (ROWS, LENGTH)).astype("int32")
    ids[:, -1] *= rng.random(ROWS) > 0.5
    batch = [tf.constant(x) for x in (ids, ids, ids)]
    batch.append(tf.cast(batch[0] != 0, tf.float32))
    compute = tf.bfloat16 if "bfloat16" in options.dtype else tf.float32

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        pairs = text(folder)
        lines = itertools.chain(pairs.source_lines(), pairs.target_lines())
        tokenizer = Tokenizer.train(lines, VOCAB)
        both = TextPreprocessor(tokenizer), tokenizer
        stream = training_batches(
            tokenize_pairs(pairs.pairs(), *both),
            batch_tokens=ROWS * LENGTH,
            max_length=100,
            seed=1,
        )
        one = tf.data.Dataset.from_tensors(
            (
                {"source_ids": batch[0], "target_ids": batch[1]},
                batch[2],
                batch[3],
            )
        ).repeat()
        run = RunDirectory(folder / "run")
        run.path.mkdir()
        raw = BareTransformer(VOCAB, **SIZE, dtype=compute)
        ours, other = build(options.dtype), with_keras_attention(options.dtype)
        tests = {
            "bare TensorFlow step": lambda n: bare(raw, batch, n),
            "kseq fit, one batch": lambda n: fit(ours, one, n, run),
            "kseq fit, from files": lambda n: fit(ours, stream, n, run),
            "keras attention, fit": lambda n: fit(other, one, n, run),
        }
        speeds = {name: [] for name in tests}
        for _ in range(options.rounds):
            for name, test in tests.items():
                speeds[name].append(test(options.steps))

    medians = {name: statistics.median(s) for name, s in speeds.items()}
    base = medians["bare TensorFlow step"]
    print(f"{options.dtype}, target tokens per second, median, of the bare")
    for name, median in medians.items():
        print(f"  {name:22} {median:8.0f}  {median / base:5.2f}")


if __name__ == "__main__":
    main()
