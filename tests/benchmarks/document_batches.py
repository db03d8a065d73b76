"""What buckets and groups save hierarchical attention from computing.

    python tests/benchmarks/document_batches.py [DOCUMENTS]

The same network, of the sizes of recipes/classify_documents.py, on the same
documents, computed in turn in three ways:

- as kseq does: batches of documents of similar sizes, their sentences sorted by
  length and read in four groups;
- without the groups: the same batches, each a (documents, sentences, words)
  grid;
- on one grid for all: documents in any order, as many sentences and words as
  the largest has.

DOCUMENTS is a table of labels and texts (`--columns` names them), or drawn at
random. Prints pieces per second of training, padding not counted, their
ratios, and the share of padding in what the recurrence over words reads.
"""

import argparse
import itertools
import random
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from kseq.data import (
    DocumentPreprocessor,
    Documents,
    document_batches,
    read_documents,
)
from kseq.models import HierarchicalAttention

VOCAB, CLASSES, GROUPS = 4000, 2, 4


def build(groups, vocab_size, num_classes):
    model = HierarchicalAttention(
        *(vocab_size, num_classes),
        embedding_dim=128,
        units=64,
        attention_units=64,
        dropout=0.5,
        dtype="mixed_bfloat16",
    )
    model.sentence_encoder.groups = groups
    model.compile(keras.optimizers.Adam(), clip_norm=1.0)
    return model


def drawn(count):
    """Documents whose sizes spread like those of reviews."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklm", k=4)) for _ in range(3000)]

    def size(mean):
        return max(1, round(mean * draw.lognormvariate(0, 0.6)))

    texts = [
        " ".join(
            " ".join(draw.choices(words, k=size(16))) + "."
            for _ in range(size(11))
        )
        for _ in range(count)
    ]
    return Documents(texts, [str(i % CLASSES) for i in range(count)])


def one_grid(ids, labels, classes, rows):
    """Batches as wide and as long as the largest document."""
    shape = ids.bounding_shape().numpy().tolist()
    numbers = tf.constant([classes.index(label) for label in labels])

    def batch(chosen):
        grid = tf.gather(ids, chosen).to_tensor(
            shape=(None, shape[1], shape[2])
        )
        weights = tf.ones(tf.shape(chosen))
        return {"source_ids": grid}, tf.gather(numbers, chosen), weights

    count = len(labels)
    return tf.data.Dataset.range(count).shuffle(count).batch(rows).map(batch)


def padding(batches, groups):
    """The share of padding in what the recurrence over words reads."""
    real = places = 0
    for inputs, *_ in batches:
        ids = inputs["source_ids"].numpy()
        lengths = np.sort((ids != 0).sum(axis=-1).ravel())
        real += lengths.sum()
        count = len(lengths)
        if groups == 1:
            places += ids.size
            continue
        edges = [count * i // groups for i in range(groups + 1)]
        for start, end in itertools.pairwise(edges):
            if end > start:
                places += (end - start) * max(lengths[end - 1], 1)
    return 1 - real / places


def train(step, batches):
    """Pieces per second."""
    words = 0
    start = time.perf_counter()
    for batch in batches:
        loss = step(batch)["loss"]
        words += np.count_nonzero(batch[0]["source_ids"])
    float(loss)
    return words / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="?")
    parser.add_argument("--columns", nargs=2, default=("label", "text"))
    parser.add_argument("--batch-pieces", type=int, default=16_384)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    documents = drawn(4000)
    if options.documents:
        documents = read_documents(options.documents, options.columns)
        chosen = random.Random(0).sample(range(len(documents.texts)), 4000)
        documents = documents._replace(
            texts=[documents.texts[i] for i in chosen],
            labels=[documents.labels[i] for i in chosen],
        )
    classes = tuple(sorted(set(documents.labels)))
    preprocessor = DocumentPreprocessor.train(documents, VOCAB)
    ids = preprocessor.tokenize_all(documents.texts)
    corpus = ids, documents.labels, classes
    buckets = document_batches(
        *corpus, batch_pieces=options.batch_pieces, seed=1
    )
    bucketed = list(buckets.take(options.steps))
    rows = sum(len(batch[1]) for batch in bucketed) // options.steps
    grid = list(one_grid(*corpus, rows).take(options.steps))

    ways = {
        "buckets and groups": (bucketed, GROUPS),
        "buckets": (bucketed, 1),
        "one grid": (grid, 1),
    }
    steps = {
        name: tf.function(
            build(groups, VOCAB, len(classes)).train_step, reduce_retracing=True
        )
        for name, (_, groups) in ways.items()
    }
    for name, (batches, _) in ways.items():
        train(steps[name], batches[:2])  # compiled
    speeds = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, (batches, _) in ways.items():
            speeds[name].append(train(steps[name], batches))

    print("pieces per second of training, median, of one grid; padding")
    base = statistics.median(speeds["one grid"])
    for name, (batches, groups) in ways.items():
        speed = statistics.median(speeds[name])
        share = padding(batches, groups)
        print(f"  {name:20} {speed:9.0f} {speed / base:6.2f} {share:7.1%}")


if __name__ == "__main__":
    main()
