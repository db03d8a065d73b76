"""What the cache is worth in decoding, and what the default rule costs.

    python tests/benchmarks/decoding.py [--dtype float32]

The Transformer of recipes/translate_transformer.py, untrained, answers 32
sources of 20 tokens with 40 tokens each: greedily and with a beam of 4, by
`decode_step` with its cache, and by the same search over a model that
recomputes the whole prefix for every token. Prints tokens of the answers per
second and ratios of medians.

Then a beam of 4 ends by its default rule and by `patience=1.0`, over two
models: in the first no answer ends before the limit, so that the ratio of
times is the cost of following the greedy hypothesis; the second ends at 2 % a
step. Prints the ratio of medians and the mean scores.
"""

import argparse
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from kseq.control_tokens import END
from kseq.decoding import BeamSearch, GreedySearch
from kseq.models import Transformer

VOCAB, ROWS, SOURCE, STEPS = 8000, 32, 20, 40


class Recomputed:
    """A model without a cache: its state is the prefix."""

    def __init__(self, model):
        self.model = model

    def encode(self, inputs):
        batch = tf.shape(inputs["source_ids"])[0]
        return {"memory": inputs, "prefix": tf.zeros((batch, 0), tf.int32)}

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


class Ending:
    """A model with sharper logits that ends at 2 % a step."""

    def __init__(self, model):
        self.encode, self.model = model.encode, model

    def decode_step(self, token_ids, state):
        logits, state = self.model.decode_step(token_ids, state)
        logits = 4 * tf.cast(logits, tf.float32)
        end = tf.reduce_logsumexp(logits, axis=-1, keepdims=True) + np.log(0.02)
        is_end = tf.range(tf.shape(logits)[-1]) == END
        return tf.where(is_end, end, logits), state


def compiled(search, model):
    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def decode(source_ids):
        limits = tf.fill(tf.shape(source_ids)[:1], STEPS)
        return search(model, {"source_ids": source_ids}, limits)

    return decode


def seconds_of(tests, source_ids, rounds):
    """name -> median seconds, and name -> Hypotheses; rounds interleaved."""
    found = {name: test(source_ids) for name, test in tests.items()}
    seconds = {name: [] for name in tests}
    for _ in range(rounds):
        for name, test in tests.items():
            start = time.perf_counter()
            test(source_ids).ids.numpy()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(s) for name, s in seconds.items()}, found


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
    searches = {"greedy": GreedySearch(), "beam of 4": BeamSearch(4)}
    models = {"cached": model, "recomputed": Recomputed(model)}
    tests = {
        (kind, name): compiled(search, decoded)
        for kind, search in searches.items()
        for name, decoded in models.items()
    }
    seconds, found = seconds_of(tests, source_ids, options.rounds)
    print(f"{options.dtype}: tokens per second, median")
    for kind in searches:
        cached, recomputed = (
            found[kind, name].lengths.numpy().sum() / seconds[kind, name]
            for name in models
        )
        same = np.array_equal(
            found[kind, "cached"].ids, found[kind, "recomputed"].ids
        )
        print(
            f"  {kind:10} cached {cached:7.0f}  recomputed {recomputed:7.0f}"
            f"  ratio {cached / recomputed:5.1f}  same answers: {same}"
        )

    rules = {"default": BeamSearch(4), "patience": BeamSearch(4, patience=1.0)}
    print("time under the default rule / under patience=1.0")
    for kind, decoded in (("no ends", model), ("2 % ends", Ending(model))):
        tests = {
            name: compiled(search, decoded) for name, search in rules.items()
        }
        seconds, found = seconds_of(tests, source_ids, options.rounds)
        scores = [
            f"{best.scores.numpy().mean():.3f}" for best in found.values()
        ]
        ratio = seconds["default"] / seconds["patience"]
        print(f"  {kind:10} {ratio:5.2f}  mean scores: {' / '.join(scores)}")


if __name__ == "__main__":
    main()
