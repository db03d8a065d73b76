"""Time and memory of four layers, against length and width.

    python tests/benchmarks/complexity.py [--picture FILE.png] [--quick]

Compares what table 1 of Vaswani et al. 2017, arXiv:1706.03762, compares: one
layer of self-attention, of self-attention within a window, an LSTM and a
convolution, on n positions of d features, forward and backward, in float32 on
CPU cores. Each measurement has its own process, and the layers take turns.
Prints the time of a call, a median, the peak memory that a call adds, and the
exponents of n and d that fit the upper half of the points best. In brackets
are those of the formulas at the same points. Heads have the same size at any
width, as in the paper.
"""

import argparse
import concurrent.futures
import ctypes
import itertools
import json
import math
import multiprocessing
import os
import resource
import statistics
import sys
import time
from pathlib import Path

from kseq.process import OPTIONAL, start_keras

FULL, WINDOW, LSTM, CONV = LAYERS = ("full", "window", "LSTM", "Conv1D")
KINDS = {"time, ms": 1000, "memory, MiB": 1 / 2**20}
OPTIONS = {
    "lengths": [512, 1024, 2048, 4096, 8192, 16_384],
    "widths": [64, 128, 256, 384, 512],
    "length": 2048,  # at which the width varies
    "width": 128,  # at which the length varies
    "window": 64,  # largest distance between positions
    "key-dim": 64,
    "kernel-size": 3,
    "batch-size": 1,
    "rounds": 2,
    "threads": 2,
    "memory-limit": 4,  # GiB that full attention may need
}
QUICK = {"lengths": [256, 512, 1024], "widths": [64, 128]}
QUICK |= {"length": 256, "width": 64, "rounds": 1}
WARM_UP_LENGTH, TIMED_SECONDS = 32, 1
CHECKED_LENGTH, TOLERANCE = 1000, 1e-5
KEPT = 4  # (n, n) tensors that a head of full attention needs, at most


def formulas(layer, n, d, options):
    """Multiplications of a forward pass, and the size of the largest tensors.

    In a window r positions are read: a block and its two neighbours.
    """
    r, h, k = 3 * options.window, options.key_dim, options.kernel_size
    return {
        FULL: (2 * n * n * d + 4 * n * d * d, n * n * d / h),
        WINDOW: (2 * r * n * d + 4 * n * d * d, r * n * d / h),
        LSTM: (8 * n * d * d, n * d),
        CONV: (k * n * d * d, n * d),
    }[layer]


def build(layer, d, options):
    import keras

    from kseq.layers import MultiHeadAttention

    h, k = options.key_dim, options.kernel_size
    built = {
        FULL: lambda: MultiHeadAttention(d // h, h),
        WINDOW: lambda: MultiHeadAttention(d // h, h, window=options.window),
        LSTM: lambda: keras.layers.LSTM(d, return_sequences=True),
        CONV: lambda: keras.layers.Conv1D(d, k, padding="same"),
    }[layer]()
    built.build((options.batch_size, None, d))
    return built


def peak_memory():
    """The most bytes that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def keep_freed_memory(keep):
    """Decides it for glibc, whose own rule depends on earlier calls."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(-3, 2**25 if keep else 2**16)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**26)  # M_TRIM_THRESHOLD


def measure(layer, n, d, options):
    """Seconds of a call, and bytes that one adds to this process."""
    start_keras(without=OPTIONAL)
    import tensorflow as tf

    layer = build(layer, d, options)
    shape = (options.batch_size, None, d)  # one graph for all lengths

    @tf.function(input_signature=[tf.TensorSpec(shape)], jit_compile=False)
    def step(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_mean(tf.square(layer(inputs)))
        return tape.gradient(loss, [inputs, *layer.trainable_weights])

    for _ in range(2):
        step(tf.random.normal((options.batch_size, WARM_UP_LENGTH, d)))
    keep_freed_memory(False)
    # Unlike tf.random.normal, it makes no other tensors of this size.
    inputs = tf.raw_ops.RandomStandardNormal(
        shape=(options.batch_size, n, d), dtype=tf.float32
    )
    before = peak_memory()
    step(inputs)
    size = peak_memory() - before

    keep_freed_memory(True)
    step(inputs)  # gets the memory that the next calls find
    seconds = []
    while sum(seconds) < TIMED_SECONDS:
        start = time.perf_counter()
        step(inputs)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), size


def largest_difference(options):
    """Between attention in blocks and to all positions under a mask."""
    start_keras(without=OPTIONAL)
    import numpy as np

    attention = build(WINDOW, options.width, options)
    shape = (options.batch_size, CHECKED_LENGTH, options.width)
    inputs = np.random.default_rng(0).standard_normal(shape, "float32")
    masked, _ = attention(inputs, return_weights=True)
    return float(np.max(np.abs(attention(inputs) - masked)))


def in_new_process(function, *args):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(function, *args).result()


def over_limit(layer, n, d, options):
    heads = options.batch_size * d // options.key_dim
    size = KEPT * heads * n**2 * 4
    return layer == FULL and size > options.memory_limit * 2**30


def measure_all(options):
    """By layer and (n, d), the numbers of each round."""
    points = {(n, options.width) for n in options.lengths}
    points |= {(options.length, d) for d in options.widths}
    results = {layer: {} for layer in LAYERS}
    for _ in range(options.rounds):
        for point, layer in itertools.product(sorted(points), LAYERS):
            if not over_limit(layer, *point, options):
                found = in_new_process(measure, layer, *point, options)
                results[layer].setdefault(point, []).append(found)
    return results


def exponents(layer, kind, axis, medians, options):
    """Of n (axis 0) or d (axis 1): as measured, and of the formula."""
    fixed = (options.width, options.length)[axis]
    points = sorted(p for p in medians if p[1 - axis] == fixed)
    points = points[max(0, min(len(points) // 2, len(points) - 2)) :]
    measured = [medians[point][kind] for point in points]
    counted = [formulas(layer, *point, options)[kind] for point in points]
    if len(points) < 2 or min(measured) <= 0:
        return math.nan, math.nan
    sizes = [math.log(point[axis]) for point in points]
    return [
        statistics.linear_regression(sizes, list(map(math.log, values))).slope
        for values in (measured, counted)
    ]


def print_tables(tables, options):
    for kind, (title, unit) in enumerate(KINDS.items()):
        print(f"\n{title:11}     n    d" + "".join(f"{x:>14}" for x in LAYERS))
        for point in sorted(tables[CONV]):
            cells = [
                f"{medians[point][kind] * unit:14.1f}"
                if point in medians
                else f"{'over limit':>14}"
                for medians in tables.values()
            ]
            print("{:17} {:4}".format(*point) + "".join(cells))
        for axis in (0, 1):
            cells = [
                "{:7.2f} ({:4.2f})".format(
                    *exponents(layer, kind, axis, medians, options)
                )
                for layer, medians in tables.items()
            ]
            print(f"exponent of {'nd'[axis]}         " + "".join(cells))
    print(f"""
formulas               full        window      LSTM    Conv1D
  time         2n²d + 4nd²   2rnd + 4nd²      8nd²      knd²
  memory           n²d / h       rnd / h        nd        nd
r = {3 * options.window}, blocks of {options.window} and their neighbours; \
h = {options.key_dim}, k = {options.kernel_size}
over limit: would need more than --memory-limit {options.memory_limit} GiB""")


def picture(tables, options):
    """Time and memory against n, a PNG image."""
    from matplotlib.figure import Figure

    from kseq.pictures.figures import figure_to_png

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    for kind, (title, unit) in enumerate(KINDS.items()):
        axes = panels[kind]
        for (layer, medians), style in zip(
            tables.items(), ("o-", "s-", "^--", "D:"), strict=True
        ):
            lengths = sorted(n for n, d in medians if d == options.width)
            values = [medians[n, options.width][kind] * unit for n in lengths]
            axes.loglog(lengths, values, style, label=layer)
        axes.set(xlabel=f"length n (width {options.width})", ylabel=title)
        axes.set_xticks(options.lengths, options.lengths)
        axes.minorticks_off()
        axes.grid(color="0.9")
    panels[0].legend()
    return figure_to_png(figure)


def positive_integer(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be positive: {text}")
    return int(text)


def file_name(text):
    if Path(text).is_dir() or not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"no directory for it: {text!r}")
    return Path(text)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in OPTIONS.items():
        parser.add_argument(
            f"--{name}",
            type=positive_integer,
            nargs="+" if isinstance(default, list) else None,
            default=default,
        )
    parser.add_argument("--picture", type=file_name, metavar="FILE.png")
    parser.add_argument("--output", type=file_name, metavar="FILE.json")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    if any(d % options.key_dim for d in (*options.widths, options.width)):
        parser.error("--widths and --width: must be multiples of --key-dim")
    if options.picture and options.picture.suffix != ".png":
        parser.error("--picture: must end in .png")
    return options


def main():
    options = parse_options()
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(options.threads)
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"

    difference = in_new_process(largest_difference, options)
    print(f"in blocks, masked: largest difference {difference:.1e}", flush=True)
    if not difference <= TOLERANCE:
        sys.exit(f"expected at most {TOLERANCE}")

    results = measure_all(options)
    tables = {
        layer: {
            point: [statistics.median(x) for x in zip(*rounds, strict=True)]
            for point, rounds in points.items()
        }
        for layer, points in results.items()
    }
    print_tables(tables, options)
    if options.output:
        rows = [
            {"layer": layer, "n": n, "d": d, "seconds and bytes": rounds}
            for layer, points in results.items()
            for (n, d), rounds in points.items()
        ]
        options.output.write_text(json.dumps(rows, indent=1))
    if options.picture:
        options.picture.write_bytes(picture(tables, options))


if __name__ == "__main__":
    main()
