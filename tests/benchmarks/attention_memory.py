"""Memory and time of attention, whole and in blocks, against length.

    python tests/benchmarks/attention_memory.py [--lengths N ...] [--layers N]

Forward and backward pass of `MultiHeadAttention`, one layer or a stack, on one
row, with 8 causal heads of 64, in float32 on CPU cores, each in a process of
its own. "whole" is what
a graph does that serves every length; in "blocks" is one of this length. Prints
the peak memory that a call adds, in MiB, with the exponent of the length, and
the CPU seconds of a call.
"""

import argparse
import math
import os
import time

from complexity import in_new_process, keep_freed_memory, peak_memory

from kseq.process import OPTIONAL, start_keras

FORMS = ("whole", "blocks", "whole, window", "blocks, window")
HEADS, KEY_DIM, WINDOW = 8, 64, 256
CALLS = 3


def measure(form, length, options):
    """MiB that a call adds to this process, and its CPU seconds."""
    start_keras(without=OPTIONAL)
    import tensorflow as tf

    from kseq.layers import MultiHeadAttention

    kind, *window = form.split(", ")
    width = HEADS * KEY_DIM
    layers = [
        MultiHeadAttention(
            *(HEADS, KEY_DIM, options.dropout),
            window=WINDOW if window else None,
        )
        for _ in range(options.layers)
    ]
    for layer in layers:
        layer.build((1, None, width))
    weights = [weight for layer in layers for weight in layer.trainable_weights]

    def step_of(shape):
        @tf.function(input_signature=[tf.TensorSpec(shape)], autograph=False)
        def step(inputs):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = inputs
                for layer in layers:
                    outputs = layer(outputs, causal=True, training=True)
                loss = tf.reduce_mean(tf.square(outputs))
            return tape.gradient(loss, [inputs, *weights])

        return step

    step_of((1, None, width))(tf.random.normal((1, 32, width)))  # warms up
    step = step_of((1, length if kind == "blocks" else None, width))
    inputs = tf.random.normal((1, length, width))
    step.get_concrete_function()
    keep_freed_memory(False)
    before = peak_memory()
    step(inputs)
    size = (peak_memory() - before) / 2**20

    keep_freed_memory(True)
    step(inputs)
    start = time.process_time()
    for _ in range(CALLS):
        step(inputs)
    return size, (time.process_time() - start) / CALLS


def exponent(lengths, values):
    """From the shortest to the longest."""
    return math.log(values[-1] / values[0]) / math.log(lengths[-1] / lengths[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[1024, 2048, 4096]
    )
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    options = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

    print("".join(f"{x:>15}" for x in ("", *options.lengths, "exponent")))
    for form in options.forms:
        found = [
            in_new_process(measure, form, length, options)
            for length in options.lengths
        ]
        for unit, values in zip(
            ("MiB", "s of CPU"), zip(*found, strict=True), strict=True
        ):
            cells = "".join(f"{value:15.2f}" for value in values)
            power = exponent(options.lengths, values)
            print(f"{form:>14}{cells}{power:15.2f} {unit}", flush=True)


if __name__ == "__main__":
    main()
