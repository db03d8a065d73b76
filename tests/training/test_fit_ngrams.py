"""A bag of n-grams is fitted to documents."""

import collections
import dataclasses
import sys
import types

import numpy as np
import pytest

from kseq.data import DocumentPreprocessor, Documents, document_batches
from kseq.models import FlatAttention
from kseq.runs import RunDirectory
from kseq.serving import Classifier
from kseq.training import fit_ngrams

fit_ngrams_module = sys.modules["kseq.training.fit_ngrams"]

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1


def texts(count, seed):
    """Labels depend on whether "not" is the word before "good"."""
    draw = np.random.default_rng(seed)
    for is_good in draw.integers(0, 2, count):
        words = draw.choice(WORDS, 6).tolist()
        words.insert(draw.integers(1, 6), "good")
        words.insert(0 if is_good else words.index("good"), "not")
        yield " ".join(words), ("bad", "good")[is_good]


def documents(count, seed):
    return Documents(*map(list, zip(*texts(count, seed), strict=True)))


@pytest.fixture(scope="module")
def parts():
    train, held_out = documents(200, 1), documents(60, 2)
    preprocessor = DocumentPreprocessor.train(train, 300)
    ids = preprocessor.tokenize_all(train.texts)
    return train, held_out, preprocessor, ids


def classifier_of(parts, labels=("bad", "good"), ngrams=2):
    preprocessor = parts[2]
    sizes = {"embedding_dim": 4, "units": 2, "attention_units": 2}
    model = FlatAttention(
        preprocessor.vocab_size, len(labels), ngrams=ngrams, **sizes
    )
    return Classifier(model, preprocessor, labels)


def fit(path, parts, classifier, **weights):
    run = RunDirectory(path)
    train, held_out, _, ids = parts
    batches = document_batches(
        *(ids, train.labels, classifier.labels),
        batch_pieces=512,
        seed=1,
        **weights,
    )
    corpus = types.SimpleNamespace(
        train_labels=train.labels, validation=held_out
    )
    fit_ngrams(run, classifier, batches, corpus)
    return classifier.model.logits


def accuracy(layer, parts):
    """Of the bag alone."""
    _, held_out, preprocessor, _ = parts
    ids = preprocessor(held_out.texts).inputs["source_ids"]
    found = layer(np.zeros((len(ids), 2), "float32"), ids)
    labels = [("bad", "good")[number] for number in np.argmax(found, -1)]
    return np.mean(np.array(labels) == np.array(held_out.labels))


@pytest.fixture(scope="module")
def fitted(parts, tmp_path_factory):
    """A classifier, and what its variables were before."""
    classifier = classifier_of(parts)
    before = [np.array(each) for each in classifier.model.variables]
    fit(tmp_path_factory.mktemp("run"), parts, classifier)
    return classifier, before


def test_pairs_tell_what_words_do_not(tmp_path, parts, fitted, capsys):
    words = fit(tmp_path, parts, classifier_of(parts, ngrams=1))
    assert accuracy(fitted[0].model.logits, parts) > 0.9
    assert accuracy(words, parts) < 0.7
    said = capsys.readouterr().out
    assert f"accuracy {accuracy(words, parts):.4f}" in said


def test_room_for_few_ngrams_is_said(tmp_path, parts, monkeypatch, capsys):
    for few, is_said in ((2**20, False), (2**20 + 1, True)):
        monkeypatch.setattr(fit_ngrams_module, "_FEW_BUCKETS", few)
        fit(tmp_path, parts, classifier_of(parts))
        message = "2 labels leave room for the scores of 1048576 n-grams only"
        assert (message in capsys.readouterr().out) == is_said


def test_the_same_bits_each_time(tmp_path, parts, fitted):
    layer = fit(tmp_path, parts, classifier_of(parts))
    for first, second in zip(
        layer.weights, fitted[0].model.logits.weights, strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_batches_are_read_in_parts_where_classes_are_many(
    tmp_path, parts, monkeypatch
):
    """What is held at once is a number for each n-gram and class."""
    sizes = []

    def recorded(name):
        function = fit_ngrams_module._Bag.__dict__[name]

        def call(self, ids, *others):
            sizes.append(ids.shape.num_elements() * 2 * 2)
            return function.__get__(self, type(self))(ids, *others)

        monkeypatch.setattr(fit_ngrams_module._Bag, name, call)

    recorded("step")
    recorded("_evaluate")
    monkeypatch.setattr(fit_ngrams_module, "_MOST_SCORES", 600)
    layer = fit(tmp_path, parts, classifier_of(parts))
    assert max(sizes) <= 600
    assert accuracy(layer, parts) > 0.9


def test_no_other_weight_changes(fitted):
    classifier, before = fitted
    changed = {
        variable.path
        for variable, old in zip(
            classifier.model.variables, before, strict=True
        )
        if np.any(np.array(variable) != old)
    }
    assert changed == {"logits/scores", "logits/bias", "logits/owners"}


def test_the_scores_of_the_lowest_loss_are_kept(tmp_path, parts):
    """Labels held out that are all wrong: the best is not to have learned."""
    train, held_out, *rest = parts
    swapped = [{"bad": "good", "good": "bad"}[each] for each in held_out.labels]
    wrong = train, Documents(held_out.texts, swapped), *rest
    layer = fit(tmp_path, wrong, classifier_of(parts))
    assert not np.any(layer.scores)


@pytest.mark.slow
def test_rare_labels_may_weigh_as_much_as_common_ones(tmp_path, parts):
    few = [i for i, each in enumerate(parts[0].labels) if each == "bad"][10:]
    kept = [i for i in range(200) if i not in few]
    train = Documents(
        *(
            [column[i] for i in kept]
            for column in (parts[0].texts, parts[0].labels)
        )
    )
    preprocessor = parts[2]
    rare = train, parts[1], preprocessor, preprocessor.tokenize_all(train.texts)
    plain = fit(tmp_path, rare, classifier_of(parts))
    balanced = fit(tmp_path, rare, classifier_of(parts), balanced=True)
    assert accuracy(balanced, parts) > accuracy(plain, parts) + 0.1


def test_a_model_with_a_checkpoint_is_left_alone(tmp_path, parts):
    classifier = classifier_of(parts)
    run = RunDirectory(tmp_path)
    last = run.checkpoints / "last"
    last.mkdir(parents=True)
    for end in ("index", "sha256"):
        (last / f"ckpt-5.{end}").touch()
    layer = fit(tmp_path, parts, classifier)
    assert not np.any(layer.scores)


def test_without_ngrams_nothing_is_read(tmp_path, parts):
    classifier = classifier_of(parts, ngrams=0)
    fit_ngrams(RunDirectory(tmp_path), classifier, None, None)


def test_the_most_frequent_ngram_owns_a_bucket(tmp_path, parts, monkeypatch):
    monkeypatch.setattr("kseq.layers.ngram_logits._MOST_BUCKETS", 64)
    monkeypatch.setattr(fit_ngrams_module, "_COUNTERS", 2**16)  # none is shared
    layer = fit(tmp_path, parts, classifier_of(parts))
    train, _, preprocessor, _ = parts
    counts = collections.Counter()
    hashes = layer.hashes(preprocessor(train.texts).inputs["source_ids"])
    for pairs in zip(*(each.numpy() for each in hashes), strict=True):
        counts.update(set(zip(*map(np.ndarray.tolist, pairs), strict=True)))
    ngrams = {bucket: [] for bucket, _ in counts}
    for (bucket, fingerprint), count in counts.items():
        if fingerprint and count > 1:
            ngrams[bucket].append((count, fingerprint))
    assert sum(len(each) > 1 for each in ngrams.values()) > 20
    expected = np.zeros(64, "int32")
    for bucket, found in ngrams.items():
        expected[bucket] = max(found, default=(0, 0))[1]
    np.testing.assert_array_equal(layer.owners, expected)
