"""What a checkpoint costs, in time and on the disk.

    python tests/benchmarks/checkpoints.py

The Transformer of the recipe (4 + 4 layers, d 128, vocabulary 8,000) with its
optimizer. In turn, ten times over: the checkpoint of kseq, flushed to the disk
and with its manifest, and TensorFlow's own of the same values, which is
neither. Prints seconds, their ratio, the seconds of a step of training, and
the size beside that of the weights.
"""

import itertools
import statistics
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from kseq.models import Transformer
from kseq.runs.checkpoint_files import read_newest, write_checkpoint

VOCAB, ROWS, LENGTH = 8000, 256, 16
TIMES = 10


def main():
    model = Transformer(
        *(VOCAB, VOCAB),
        num_encoder_layers=4,
        num_decoder_layers=4,
        model_dim=128,
        ffn_dim=256,
        num_heads=4,
        dropout=0.3,
        share_embeddings=True,
        dtype="mixed_bfloat16",
    )
    model.compile(keras.optimizers.Adam(0.001), clip_norm=1.0)
    ids = np.random.default_rng(1).integers(4, VOCAB, (ROWS, LENGTH), "int32")
    batch = {"source_ids": ids, "target_ids": ids}, ids, np.ones(ids.shape)

    with tempfile.TemporaryDirectory() as folder:
        ours, plain = Path(folder, "ours"), Path(folder, "plain")
        plain.mkdir()
        values = {
            "vars": [v.value for v in model.variables],
            "opt": [v.value for v in model.optimizer.variables],
        }
        checkpoint = tf.train.Checkpoint(**values)
        steps = itertools.count()
        works = {
            "step": lambda: model.train_on_batch(*batch),
            "kseq": lambda: write_checkpoint(ours, next(steps), 1, **values),
            "TensorFlow": lambda: checkpoint.write(str(plain / "ckpt")),
        }
        seconds = {name: [] for name in works}
        for count, name in itertools.product(range(TIMES + 1), works):
            start = time.perf_counter()
            works[name]()
            if count:  # the first one traces
                seconds[name].append(time.perf_counter() - start)
        start = time.perf_counter()
        read_newest(ours)
        reading = time.perf_counter() - start
        size = sum(path.stat().st_size for path in ours.iterdir())

    medians = {name: statistics.median(s) for name, s in seconds.items()}
    for name, median in medians.items():
        print(f"{name:<20} {median:.3f} s")
    print(f"{'read and checked':<20} {reading:.3f} s")
    plain = medians["TensorFlow"]
    print(f"kseq / TensorFlow    {medians['kseq'] / plain:.2f}")
    print(f"kseq / step          {medians['kseq'] / medians['step']:.2f}")
    weights = 4 * model.count_params()
    print(f"size / weights       {size / weights:.2f} ({size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
