"""Whether batches come faster than a training step takes them.

    python tests/benchmarks/input_pipeline.py [SOURCE TARGET]

The pipeline of `training_batches` alone (files, tokenizer, shuffling,
batches of 4,096 tokens), and the training step of the Transformer of
recipes/translate_transformer.py alone, on its first batches, in turn. The
text is two files of yours, or drawn at random. Prints target tokens per
second, padding not counted, their ratio, and the share of padding.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import tensorflow as tf
from training_step import VOCAB, build, text

from kseq.data import (
    ParallelText,
    TextPreprocessor,
    Tokenizer,
    tokenize_pairs,
    training_batches,
)


def consume(batches, steps, use):
    """Target tokens per second, and places that hold none."""
    tokens = places = 0
    start = time.perf_counter()
    for batch in itertools.islice(batches, steps):
        use(batch)
        tokens += int(tf.math.count_nonzero(batch[2]))
        places += int(tf.size(batch[2]))
    return tokens / (time.perf_counter() - start), 1 - tokens / places


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--subword-dropout", type=float, default=0.0)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        if options.files:
            pairs = ParallelText(*options.files)
        else:
            pairs = text(Path(folder))
        lines = itertools.chain(pairs.source_lines(), pairs.target_lines())
        tokenizer = Tokenizer.train(lines, VOCAB)
        both = TextPreprocessor(tokenizer), tokenizer
        batches = iter(
            training_batches(
                tokenize_pairs(pairs.pairs(), *both),
                batch_tokens=4096,
                max_length=100,
                seed=1,
                subword_dropout=options.subword_dropout,
            )
        )
        ready = list(itertools.islice(batches, options.steps))
        model = build("mixed_bfloat16")
        step = tf.function(model.train_step, reduce_retracing=True)
        consume(ready, options.steps, step)  # compiled

        alone, training = [], []
        for _ in range(options.rounds):
            speed, padding = consume(
                batches, 10 * options.steps, lambda batch: None
            )
            alone.append(speed)
            speed, _ = consume(
                ready, options.steps, lambda batch: float(step(batch)["loss"])
            )
            training.append(speed)

    alone, training = statistics.median(alone), statistics.median(training)
    print("target tokens per second, median")
    print(f"  pipeline alone       {alone:9.0f}")
    print(f"  training step alone  {training:9.0f}")
    print(f"  ratio {alone / training:.1f}, padding {padding:.1%}")


if __name__ == "__main__":
    main()
