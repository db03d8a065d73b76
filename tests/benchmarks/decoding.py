"""What the cache is worth in decoding.

    python tests/benchmarks/decoding.py [--dtype float32]

The Transformer of recipes/translate_transformer.py, untrained, answers 32
sources of 20 tokens with 40 tokens each: greedily and with a beam of 4, by
`decode_step` with its cache, and by the same search over a model that
computes the whole prefix anew for every token. Prints tokens of the answers
per second and ratios of medians.
"""

import argparse
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from kseq.decoding import beam_search, greedy_search
from kseq.models import Transformer

VOCAB, ROWS, SOURCE, STEPS = 8000, 32, 20, 40


class Recomputed:
    """A model without a cache: its state is the prefix."""

    def __init__(self, model):
        self.model = model

    def encode(self, source_ids):
        prefix = tf.zeros((tf.shape(source_ids)[0], 0), tf.int32)
        return {"memory": {"source_ids": source_ids}, "prefix": prefix}

    def decode_step(self, token_ids, state):
        source_ids = state["memory"]["source_ids"]
        prefix = tf.concat([state["prefix"], token_ids[:, None]], axis=1)
        hypotheses = tf.shape(prefix)[0] // tf.shape(source_ids)[0]
        logits = self.model(
            {
                "source_ids": tf.repeat(source_ids, hypotheses, axis=0),
                "target_ids": prefix,
            }
        )
        return logits[:, -1], {"memory": state["memory"], "prefix": prefix}


def compiled(search, model, **arguments):
    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def decode(source_ids):
        limits = tf.fill(tf.shape(source_ids)[:1], STEPS)
        return search(model, source_ids, limits, **arguments)

    return decode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    keras.utils.set_random_seed(1)
    model = Transformer(
        VOCAB,
        VOCAB,
        num_encoder_layers=4,
        num_decoder_layers=4,
        model_dim=128,
        ffn_dim=256,
        num_heads=4,
        share_embeddings=True,
        dtype=options.dtype,
    )
    rng = np.random.default_rng(0)
    source_ids = tf.constant(rng.integers(4, VOCAB, (ROWS, SOURCE)), tf.int32)
    tests = {}
    for name, decoded in (("cached", model), ("recomputed", Recomputed(model))):
        tests[f"greedy, {name}"] = compiled(greedy_search, decoded)
        tests[f"beam of 4, {name}"] = compiled(
            beam_search, decoded, beam_size=4
        )

    speeds = {name: [] for name in tests}
    answers = {name: test(source_ids).ids for name, test in tests.items()}
    for _ in range(options.rounds):
        for name, test in tests.items():
            start = time.perf_counter()
            ids = test(source_ids).ids.numpy()
            seconds = time.perf_counter() - start
            speeds[name].append((ids[:, 0] != 0).sum() / seconds)

    medians = {name: statistics.median(s) for name, s in speeds.items()}
    print(f"{options.dtype}: tokens per second, median")
    for kind in ("greedy", "beam of 4"):
        cached, recomputed = f"{kind}, cached", f"{kind}, recomputed"
        same = np.array_equal(answers[cached], answers[recomputed])
        print(
            f"  {kind:10} cached {medians[cached]:7.0f}"
            f"  recomputed {medians[recomputed]:7.0f}"
            f"  ratio {medians[cached] / medians[recomputed]:5.1f}"
            f"  same answers: {same}"
        )


if __name__ == "__main__":
    main()
