import functools
import itertools
import logging
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.data import (
    DataError,
    ParallelText,
    TextPreprocessor,
    Tokenizer,
    evaluation_batches,
    tokenize_pairs,
    training_batches,
)
from kseq.data.files.batch_shapes import MAX_SHAPES
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.text.tokenized_pairs import TokenizedPairs

MULTI30K = pathlib.Path(__file__, "../../../../shared/data/multi30k").resolve()


def dataset(sources, targets=None):
    return tf.data.Dataset.from_tensor_slices((sources, targets or sources))


def numbered(count):
    """Sentences of all lengths, each another one."""
    return [f"{number} " + "ab " * (number % 23) for number in range(count)]


def training(tokenizer, sources, targets=None, **kwargs):
    kwargs = {"batch_tokens": 256, "max_length": 64, "seed": 1, **kwargs}
    both = TextPreprocessor(tokenizer), tokenizer
    pairs = tokenize_pairs(dataset(sources, targets), *both)
    return training_batches(pairs, **kwargs)


@functools.cache
def usual(tokenizer):
    """Batches that are only read, of texts that all fit into `max_length`."""
    return training(tokenizer, numbered(120))


@functools.cache
def traced_again(tokenizer):
    """The same ones as another process would make them."""
    return training(tokenizer, numbered(120))


def corpora_of(sizes):
    """Pairs of corpora, with so many tokens on each side, END included."""
    lengths = np.concatenate(sizes)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = 4 + np.repeat(np.arange(len(sizes)), [sum(each) for each in sizes])
    ids[offsets[1:] - 1] = END
    rows = RaggedArray(ids, offsets)
    return TokenizedPairs(rows, rows, tuple(map(len, sizes)), None)


def test_weights_are_those_of_pairs_that_are_not_left_out():
    """Whatever part of a corpus is too long."""
    sizes = [[60] * 800 + [10] * 200, [10] * 1000, [10] * 50 + [60] * 50]
    options = {"batch_tokens": 400, "seed": 1, "max_shapes": 2}
    for weights in ((0.5, 0.5, 1.0), (0.2, 1.0, 0.4)):
        batches = training_batches(
            corpora_of(sizes), max_length=50, weights=weights, **options
        )
        found = np.zeros(3)
        for inputs, _, weight in batches.take(100):
            first = inputs["source_ids"].numpy()[weight.numpy().any(axis=1), 0]
            found += np.bincount(first - 4, minlength=3)
        expected = np.array(weights) / sum(weights)
        np.testing.assert_allclose(found / found.sum(), expected, atol=0.03)


def test_weights_are_unchanged_where_no_pair_is_left_out(monkeypatch):
    weights, seen = (0.3, 1.0), []
    monkeypatch.setattr(
        "kseq.data.text.batches.shuffled_batches",
        lambda *_, weights, **__: seen.append(weights),
    )
    pairs = corpora_of([[9] * 7, [60] * 20])
    options = {"batch_tokens": 400, "seed": 1, "weights": weights}
    training_batches(pairs, max_length=60, **options)
    assert seen == [weights]
    message = "Corpus 2 of 2 has a weight, but no pair to train on"
    with pytest.raises(DataError, match=message):
        training_batches(pairs, max_length=50, **options)


def evaluation(tokenizer, sources, targets=None, batch_tokens=256):
    return evaluation_batches(
        dataset(sources, targets),
        TextPreprocessor(tokenizer),
        tokenizer,
        batch_tokens=batch_tokens,
    )


@functools.cache
def usual_evaluation(tokenizer):
    return evaluation(tokenizer, numbered(120), batch_tokens=128)


def source_texts(tokenizer, batches):
    ids = (inputs["source_ids"].numpy().tolist() for inputs, _, _ in batches)
    rows = itertools.chain.from_iterable(ids)
    # Those of all batches at once: each call takes milliseconds.
    padded = np.transpose([*itertools.zip_longest(*rows, fillvalue=PAD)])
    return [text.decode() for text in tokenizer.detokenize(padded).numpy()]


def test_a_batch_is_one_shift_of_the_target(tokenizer):
    source, target = ["a dog"], ["The woman"]
    source_ids, target_ids = tokenizer.tokenize(source + target).to_list()

    ((inputs, labels, weights),) = evaluation(tokenizer, source, target)

    assert inputs["source_ids"].numpy().tolist() == [[*source_ids, END]]
    assert inputs["target_ids"].numpy().tolist() == [[START, *target_ids]]
    assert labels.numpy().tolist() == [[*target_ids, END]]
    assert weights.numpy().tolist() == [[1.0] * (len(target_ids) + 1)]
    assert weights.dtype == tf.float32
    assert labels.dtype == tf.int32


def test_padding_has_no_weight_and_no_end(tokenizer):
    for inputs, labels, weights in usual(tokenizer).take(20):
        target_ids, labels = inputs["target_ids"].numpy(), labels.numpy()
        real = labels != PAD
        np.testing.assert_array_equal(target_ids != PAD, real)
        real[~weights.numpy().any(axis=1)] = False  # the rest of an epoch
        np.testing.assert_array_equal(weights.numpy(), real)
        assert (np.sum(labels == END, axis=1) == 1).all()
        assert not (target_ids == END).any()
        assert (np.sum(inputs["source_ids"] == END, axis=1) == 1).all()


def test_training_batches_hold_the_budget_in_few_lengths(tokenizer):
    batches = training(
        tokenizer, numbered(300), batch_tokens=512, max_length=70
    )

    shapes, real, size = set(), 0, 0
    for inputs, labels, weights in batches.take(50):
        longest = max(inputs["source_ids"].shape[1], labels.shape[1])
        assert len(labels) * longest <= 512
        size += tf.size(labels).numpy()
        real += np.count_nonzero(weights)
        shapes.add(labels.shape)

    assert len(shapes) <= MAX_SHAPES
    assert real / size > 0.8


def test_one_trace_serves_all_shapes(tokenizer):
    (inputs, labels, weights) = usual(tokenizer).element_spec

    for spec in (*inputs.values(), labels, weights):
        assert spec.shape.as_list() == [None, None]


def test_sides_of_unlike_lengths_are_padded_apart(tokenizer):
    inputs, labels, _ = next(
        iter(training(tokenizer, ["ab " * 30], ["x"], batch_tokens=128))
    )

    assert labels.shape[1] <= 4
    assert inputs["source_ids"].shape[1] > 30


def test_training_is_endless_in_a_different_order_each_epoch(tokenizer):
    texts = list("abcdefgh")  # of one length, so that an epoch is two batches

    batches = training(tokenizer, texts, batch_tokens=8).take(80)
    drawn = source_texts(tokenizer, batches)

    epochs = {tuple(drawn[at : at + 8]) for at in range(0, len(drawn), 8)}
    assert len(drawn) == 160
    assert {drawn.count(text) for text in texts} == {20}
    assert len(epochs) > 10


def test_the_seed_decides(tokenizer):
    def drawn(batches):
        return source_texts(tokenizer, batches.take(4))

    known, again = drawn(usual(tokenizer)), drawn(traced_again(tokenizer))
    other = drawn(training(tokenizer, numbered(120), seed=2))
    assert known == again != other


def test_neighbours_in_the_file_part(tokenizer):
    texts = numbered(2000)
    position = {text.strip(): place for place, text in enumerate(texts)}

    drawn = source_texts(tokenizer, training(tokenizer, texts).take(50))

    gaps = np.abs(np.diff([position[text] for text in drawn]))
    assert np.median(gaps) > 200


def test_training_drops_and_evaluation_keeps(tokenizer):
    sources = ["good", " ", "x", "", "ab " * 60, "fine"]
    targets = ["gut", "leer", "\r\n", "", "lang", "fein"]

    trained = training(tokenizer, sources, targets, max_length=20).take(8)
    evaluated = evaluation(tokenizer, sources, targets)

    assert set(source_texts(tokenizer, trained)) == {"good", "fine"}
    assert sorted(source_texts(tokenizer, evaluated)) == sorted(
        text.strip() for text in sources
    )


def test_a_line_of_two_megabytes_is_dropped(tokenizer):
    texts = ["good", "lang " * 400_000]

    batches = training(tokenizer, texts, max_length=2**20)

    assert set(source_texts(tokenizer, batches.take(8))) == {"good"}


def test_long_pairs_are_counted(tokenizer, caplog):
    caplog.set_level(logging.WARNING)
    training(tokenizer, ["a", "ab " * 40, "b"], max_length=20)

    assert "1 of 3 pairs are left out of training" in caplog.text
    assert "max_length=20" in caplog.text


@pytest.mark.parametrize("texts", [[""], [" ", "ab " * 40]])
def test_nothing_to_train_on_is_an_error(tokenizer, texts):
    with pytest.raises(DataError, match=r"no pair to train on.*max_length=20"):
        training(tokenizer, texts, max_length=20)


def test_ids_are_the_same_in_batches_served_and_alone(tokenizer):
    texts = numbered(120)
    expected = {(*ids, END) for ids in tokenizer.tokenize(texts).to_list()}
    served = TextPreprocessor(tokenizer)(texts).inputs["source_ids"].numpy()
    assert {tuple(ids[ids != PAD].tolist()) for ids in served} == expected

    for batches in (
        usual_evaluation(tokenizer),
        usual(tokenizer).take(100),
    ):
        found = {
            tuple(ids[ids != PAD].tolist())
            for inputs, _, _ in batches
            for ids in inputs["source_ids"].numpy()
        }
        assert found == expected


def test_evaluation_yields_each_pair_once_in_like_lengths(tokenizer):
    texts = numbered(120)

    batches = list(usual_evaluation(tokenizer))

    drawn = source_texts(tokenizer, batches)
    assert sorted(drawn) == sorted(text.strip() for text in texts)
    for inputs, labels, weights in batches:
        assert labels.shape[0] == 1 or tf.size(labels) <= 128
        assert (np.asarray(inputs["source_ids"]) != PAD).all(axis=0).any()
        assert weights.numpy().any(axis=0).all()  # no longer than its longest


def test_any_position_is_found_at_once(tokenizer):
    """Also in a process that has read nothing before."""

    def following(batches, count=12):
        return [
            (inputs["source_ids"].numpy().tolist(), labels.numpy().tolist())
            for inputs, labels, _ in batches.take(count)
        ]

    whole = following(usual(tokenizer), 40)
    batches = traced_again(tokenizer)
    for first, second in ((9, 0), (3, 25)):
        position = batches.position_after(0, first)
        position = batches.position_after(position, second)
        found = following(batches.starting_at(position))
        assert found == whole[first + second :][:12]


def test_a_position_is_the_number_of_pairs_read(tokenizer):
    """So it is valid for batches of another size."""
    batches = training(tokenizer, numbered(120), batch_tokens=64)
    read = batches.position_after(0, 24)
    assert read == len(source_texts(tokenizer, batches.take(24))) < 120

    larger = usual(tokenizer)  # 256
    rest = larger.starting_at(read)
    count = 0
    while larger.position_after(read, count) < 120:
        count += 1
    found = source_texts(tokenizer, rest.take(count))
    assert 120 - read <= len(found) < 120 - read + 64


def lengths_of(batches):
    """The shapes of sources and of labels."""
    return {(x["source_ids"].shape, y.shape) for x, y, _ in batches}


@pytest.fixture(scope="module")
def few_shapes(tokenizer):
    """Batches of the 120 texts of `numbered`."""
    return training(tokenizer, numbered(120), max_shapes=5)


def test_few_shapes_each_with_its_rows(few_shapes):
    """Which are those that a compiler is told."""
    expected = {
        (inputs["source_ids"].shape, labels.shape)
        for inputs, labels, _ in few_shapes.shapes
    }
    assert lengths_of(few_shapes.take(60)) == expected
    assert 3 <= len(expected) <= 5
    for source, labels in expected:
        assert source[0] == labels[0]
        fit = 256 // max(source[1], labels[1])
        assert fit * 7 / 8 <= source[0] <= fit
        assert source[0] % 2 == 0 or source[0] < 8
    for known, spec in zip(
        tf.nest.flatten(few_shapes.shapes[0]),
        tf.nest.flatten(few_shapes.element_spec),
        strict=True,
    ):
        assert known.is_compatible_with(spec)


def test_few_shapes_hold_the_same_pairs(tokenizer, few_shapes):
    drawn = source_texts(tokenizer, few_shapes.take(100))

    assert {*drawn} == {text.strip() for text in numbered(120)}
    for inputs, labels, weights in few_shapes.take(20):
        real = labels.numpy() != PAD
        fills = ~weights.numpy().any(axis=1)  # the rest of an epoch
        real[fills] = False
        np.testing.assert_array_equal(weights.numpy(), real)
        assert (np.sum(inputs["source_ids"] == END, axis=1) == 1).all()
        assert (np.sum(labels == END, axis=1) == 1).all()


def test_batches_do_not_depend_on_devices(tokenizer, monkeypatch, two_devices):
    alone = list(usual(tokenizer).take(9))
    gpu = [tf.config.LogicalDevice("/device:GPU:0", "GPU")]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpu)
    with two_devices.scope():
        others = training(tokenizer, numbered(120)).take(9)
    for batch, other in zip(alone, others, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, batch, other)


MEMORY = """
import resource, sys
import numpy as np
import tensorflow as tf
from kseq.data import TextPreprocessor, Tokenizer, TokenizedPairs
from kseq.data import training_batches
from kseq.data.files import shuffled_batches
from kseq.data.files.ragged_array import RaggedArray

folder, pairs = sys.argv[1], int(sys.argv[2])
shuffled_batches.WINDOW = 1000
values = np.arange(64 * pairs, dtype="uint16") % 99 + 4
RaggedArray(values, np.arange(pairs + 1) * 64).save(f"{folder}/ids")
del values
ids = RaggedArray.open(f"{folder}/ids", "uint16", (64 * pairs,))
tokenizer = Tokenizer.load(f"{folder}/tokenizer.model")
batches = training_batches(
    TokenizedPairs(ids, ids, (pairs,), TextPreprocessor(tokenizer)),
    batch_tokens=4096, max_length=128, seed=1,
)
for inputs, labels, weights in batches.take(300):
    pass
# Without the pages of files that are mapped, which are not its own.
for line in open("/proc/self/status"):
    if line.startswith("RssAnon:"):
        print(int(line.split()[1]) / 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_text(tokenizer, tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model)

    def megabytes(pairs):
        result = subprocess.run(
            [sys.executable, "-c", MEMORY, tmp_path, str(pairs)],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return float(result.stdout)

    few = megabytes(pairs=10_000)
    many = megabytes(pairs=1_000_000)  # 128 MB

    assert many - few < 60


@pytest.mark.slow
@pytest.mark.skipif(
    not MULTI30K.exists(), reason="Multi30k is not beside this repository"
)
def test_little_of_multi30k_is_padding():
    text = ParallelText(MULTI30K / "train.de", MULTI30K / "train.en")
    lines = itertools.chain(text.source_lines(), text.target_lines())
    tokenizer = Tokenizer.train(lines, 8000)
    both = TextPreprocessor(tokenizer), tokenizer
    batches = training_batches(
        tokenize_pairs(text.pairs(), *both),
        batch_tokens=4096,
        max_length=100,
        seed=1,
    )

    real = places = 0
    for inputs, labels, _ in batches.take(125):  # an epoch
        for ids in (inputs["source_ids"].numpy(), labels.numpy()):
            real += np.count_nonzero(ids)
            places += ids.size

    assert real / places > 0.88
    assert len(batches.shapes) <= 12


def test_iterators_are_deleted_at_once(tokenizer):
    """Without the thread of autotuning, for which they could wait a minute."""
    for batches in (usual(tokenizer), usual_evaluation(tokenizer)):
        assert batches.options().autotune.enabled is False
