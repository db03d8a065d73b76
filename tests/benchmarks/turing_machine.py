"""Training steps of a Turing machine: kseq beside pytorch-ntm.

python tests/benchmarks/turing_machine.py CLONE --torch PYTHON

CLONE is a clone of github.com/loudinthecloud/pytorch-ntm, and PYTHON an
interpreter that has torch; by default the one of this script. Both machines
copy sequences of 1 to 20 vectors of 8 bits, the same lengths in the same order:
128 slots of 20, one head that reads and one that writes, an LSTM of 100 units.
A step is forward, backward and an update of RMSprop. They take turns, each time
in a process of its own. Prints the median of milliseconds per step of each, and
their ratio, for batches of 1 and 16 sequences.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

BATCHES = 1, 16
LONGEST, BITS, UNITS, SLOTS, SLOT_DIM = 20, 8, 100, 128, 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=("kseq", "torch"))
    parser.add_argument("--batch", type=int)
    options = parser.parse_args()
    if options.part:
        train = {"kseq": train_kseq, "torch": train_torch}[options.part]
        print(json.dumps(mean_time(train(options), options.steps)))
        return

    for batch in BATCHES:
        pythons = {"kseq": sys.executable, "torch": options.torch}
        times = {part: [] for part in pythons}
        for _ in range(options.rounds):
            for part, python in pythons.items():
                times[part].append(measured(part, batch, python, options))
        ours, theirs = (1000 * statistics.median(t) for t in times.values())
        print(
            f"batch {batch}: kseq {ours:.1f} ms, pytorch-ntm {theirs:.1f} ms, "
            f"ratio {ours / theirs:.3f}",
            flush=True,
        )


def measured(part, batch, python, options):
    """Seconds per step, of another process."""
    command = [python, *sys.argv, "--part", part, "--batch", str(batch)]
    threads = str(options.threads)
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": threads,
    }
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def mean_time(train, steps):
    """Seconds per step, after every length has been seen once."""
    lengths = [*range(1, LONGEST + 1)]
    train(lengths)
    lengths = random.Random(1).choices(lengths, k=steps)
    start = time.perf_counter()
    train(lengths)
    return (time.perf_counter() - start) / steps


def train_kseq(options):
    from kseq.process import start_keras

    start_keras()
    import keras
    import tensorflow as tf

    from kseq.data.algorithms import CopySequence
    from kseq.data.algorithms.binary_sequences import (
        asked_at_the_end,
        flag,
        random_bits,
    )
    from kseq.layers import NeuralTuringMachine
    from kseq.models import BinaryRNN

    keras.utils.set_random_seed(1)
    task = CopySequence(bits=BITS)
    cell = NeuralTuringMachine(
        UNITS, slots=SLOTS, slot_dim=SLOT_DIM, controller_units=UNITS
    )
    model = BinaryRNN(task.input_dim, task.output_dim, cell)
    model.compile(keras.optimizers.RMSprop(1e-4, rho=0.95, momentum=0.9))

    def batch(length):
        vectors = random_bits(
            (options.batch, length, BITS), tf.stack([1, length])
        )
        drawn = asked_at_the_end(flag(vectors, task.input_dim, BITS), vectors)
        shape = (options.batch, None)
        source = tf.ensure_shape(drawn.inputs, (*shape, task.input_dim))
        targets = tf.ensure_shape(drawn.targets, (*shape, BITS))
        return {"source": source}, targets, drawn.weights

    def train(lengths):
        batches = tf.data.Dataset.from_tensor_slices(lengths).map(batch)
        model.fit(batches, verbose=0, shuffle=False)

    return train


def train_torch(options):
    sys.path.insert(0, str(options.clone))
    import torch
    from ntm.aio import EncapsulatedNTM

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    machine = EncapsulatedNTM(BITS + 1, BITS, UNITS, 1, 1, SLOTS, SLOT_DIM)
    optimizer = torch.optim.RMSprop(
        machine.parameters(), lr=1e-4, alpha=0.95, momentum=0.9
    )
    cross_entropy = torch.nn.BCELoss()

    def train(lengths):
        for length in lengths:
            step(length)

    def step(length):
        targets = torch.randint(0, 2, (length, options.batch, BITS)).float()
        inputs = torch.zeros(length + 1, options.batch, BITS + 1)
        inputs[:length, :, :BITS] = targets
        inputs[length, :, BITS] = 1
        optimizer.zero_grad()
        machine.init_sequence(options.batch)
        for values in inputs:
            machine(values)
        found = torch.stack([machine()[0] for _ in range(length)])
        cross_entropy(found, targets).backward()
        torch.nn.utils.clip_grad_value_(machine.parameters(), 10.0)
        optimizer.step()

    return train


if __name__ == "__main__":
    main()
