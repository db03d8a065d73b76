"""The bag of n-grams of a classifier, fitted to its documents."""

import math

import tensorflow as tf

from kseq.data.files.labelled_batches import class_numbers
from kseq.devices import is_chief
from kseq.layers.ngram_logits import first_places
from kseq.runs.checkpoint_files import checkpoint_paths
from kseq.terminal import progress

_MOST_PASSES = 20
_MOST_DOCUMENTS = 100_000  # of a pass
_PATIENCE = 2  # passes without a lower loss
_HELD_OUT_BATCH = 64  # documents
_COUNTERS = 16  # of the n-grams of a bucket
_FEW_BUCKETS = 2**13  # those of 1,025 classes and more have fewer
_FEWEST = 2  # documents of an n-gram that owns a bucket
_MOST_SCORES = 2**26  # of n-grams, for each class, at once; 256 MB
_IDS = tf.TensorSpec((None, None, None), tf.int32)
_LABELS = tf.TensorSpec((None,), tf.int32)
_WEIGHTS = tf.TensorSpec((None,), tf.float32)


def fit_ngrams(run, classifier, batches, corpus):
    """Fits the bag of n-grams of a classifier of documents, if it has one.

    It is a linear model of the n-grams of a document, each multiplied by the
    log ratio of its frequency in a class to that in the others. It reads
    n-grams that occur in several documents, and of those with the same hash
    only the most frequent one. Stochastic gradient descent minimizes the
    cross-entropy, until that of the held-out documents has not fallen for two
    passes; the scores with its lowest value are kept. This takes seconds, and
    is skipped if the model has a checkpoint, which contains the scores.

    Args:
        run: `RunDirectory`.
        classifier: `kseq.serving.Classifier` of documents, see
            `kseq.layers.NgramLogits`.
        batches: of `kseq.data.document_batches`.
        corpus: `kseq.data.PreparedDocuments`, those of the batches, of which a
            pass reads at most 100,000, and those held out of them.

    Reference:
        Wang and Manning 2012, aclanthology.org/P12-2018, with logistic
        regression.
    """
    model, layer = classifier.model, classifier.model.logits
    if not layer.ngrams or checkpoint_paths(run.checkpoints / "last"):
        return
    held_out = list(_held_out_batches(classifier, corpus.validation))
    count = min(len(corpus.train_labels), _MOST_DOCUMENTS)
    total = (3 + _MOST_PASSES) * count
    # Where sums have one order: on a GPU they do not.
    with progress("Fitting n-grams", total) as advance, tf.device("CPU"):
        frequencies = _Frequencies(layer)
        for ids, *_ in _one_pass(layer, batches, count, advance):
            frequencies.add(ids)
        owners = _Owners(layer, frequencies)
        for ids, *_ in _one_pass(layer, batches, count, advance):
            owners.add(ids)
        with model.distribute_strategy.scope():
            layer.owners.assign(owners.values())
        counts = _Counts(layer)
        for batch in _one_pass(layer, batches, count, advance):
            counts.add(*batch)
        bag = _Bag(layer, counts)
        best, best_pass, values = bag.evaluate(held_out), 0, bag.values()
        for number in range(1, 1 + _MOST_PASSES):
            for batch in _one_pass(layer, batches, count, advance):
                bag.step(*batch)
            scores = bag.evaluate(held_out)
            if scores < best:
                best, best_pass, values = scores, number, bag.values()
            if number - best_pass == _PATIENCE:
                break
    with model.distribute_strategy.scope():
        layer.scores.assign(values[0])
        layer.bias.assign(values[1])
    if is_chief():
        if layer.num_buckets < _FEW_BUCKETS:
            print(
                f"{layer.num_classes} labels leave room for the scores of "
                f"{layer.num_buckets} n-grams only: --ngrams 0 may be better",
                flush=True,
            )
        loss, wrong = best
        print(
            f"n-grams alone: accuracy {1 - wrong:.4f}, loss {loss:.4f} on "
            f"validation, after {best_pass} passes",
            flush=True,
        )


def _one_pass(layer, batches, count, advance):
    """Batches with `count` documents or a few more."""
    for inputs, labels, weights in batches:
        yield from _parts(layer, inputs["source_ids"], labels, weights)
        count -= len(labels)
        advance(len(labels))
        if count <= 0:
            return


def _parts(layer, ids, *others):
    """A batch in parts whose n-grams have few enough scores of classes."""
    scores = math.prod(ids.shape[1:]) * layer.ngrams * layer.num_classes
    size = max(1, _MOST_SCORES // max(scores, 1))
    for start in range(0, len(ids), size):
        yield tuple(each[start : start + size] for each in (ids, *others))


def _held_out_batches(classifier, documents):
    numbers = class_numbers(documents.labels, classifier.labels)
    for start in range(0, len(numbers), _HELD_OUT_BATCH):
        end = start + _HELD_OUT_BATCH
        source = classifier.preprocessor(documents.texts[start:end])
        ids = source.inputs["source_ids"]
        yield from _parts(classifier.model.logits, ids, numbers[start:end])


class _Frequencies(tf.Module):
    """How many documents have an n-gram, nearly: few share a counter."""

    def __init__(self, layer):
        super().__init__()
        self._layer = layer
        self._size = layer.num_buckets * _COUNTERS
        self._counts = tf.Variable(tf.zeros(self._size, tf.int32))

    @tf.function(input_signature=(_IDS,))
    def add(self, ids):
        buckets, fingerprints = self._layer.hashes(ids)
        counters, is_new = first_places(
            self._counters(buckets, fingerprints), fingerprints > 0, self._size
        )
        found = tf.boolean_mask(counters, is_new)
        self._counts.scatter_add(tf.IndexedSlices(tf.ones_like(found), found))

    def of(self, buckets, fingerprints):
        return tf.gather(self._counts, self._counters(buckets, fingerprints))

    def _counters(self, buckets, fingerprints):
        return buckets * _COUNTERS + fingerprints % _COUNTERS


class _Owners(tf.Module):
    """The fingerprint of the most frequent n-gram of each bucket, or 0."""

    def __init__(self, layer, frequencies):
        super().__init__()
        self._layer = layer
        self._frequencies = frequencies
        self._claims = tf.Variable(tf.zeros(layer.num_buckets, tf.int64))

    @tf.function(input_signature=(_IDS,))
    def add(self, ids):
        buckets, fingerprints = self._layer.hashes(ids)
        counts = self._frequencies.of(buckets, fingerprints)
        may_own = (fingerprints > 0) & (counts >= _FEWEST)
        claims = tf.cast(counts, tf.int64) * 2**32
        claims += tf.cast(fingerprints, tf.int64)
        self._claims.scatter_max(
            tf.IndexedSlices(
                tf.boolean_mask(claims, may_own),
                tf.boolean_mask(buckets, may_own),
            )
        )

    def values(self):
        return tf.cast(self._claims % 2**32, tf.int32)


class _Counts(tf.Module):
    """How many documents of each class have an n-gram, by their weights."""

    def __init__(self, layer):
        super().__init__()
        self._layer = layer
        self.documents = tf.Variable(tf.zeros(layer.num_classes))
        shape = layer.num_buckets, layer.num_classes
        self.ngrams = tf.Variable(tf.zeros(shape))

    @tf.function(input_signature=(_IDS, _LABELS, _WEIGHTS))
    def add(self, ids, labels, weights):
        """Counts those of a batch."""
        counts = tf.one_hot(labels, self._layer.num_classes) * weights[:, None]
        self.documents.assign_add(tf.reduce_sum(counts, axis=0))
        buckets, rows = _ngrams(self._layer, ids)
        _add(self.ngrams, buckets, tf.gather(counts, rows))


class _Bag(tf.Module):
    """A linear model whose features are log ratios of counts."""

    def __init__(self, layer, counts):
        super().__init__()
        self._layer = layer
        own = counts.ngrams.value()
        used = tf.reduce_sum(own, axis=1, keepdims=True)
        ratios = _log_shares(own) - _log_shares(used - own)
        self._ratios = tf.Variable(tf.where(used > 0, ratios, 0.0))
        self._weights = tf.Variable(tf.zeros_like(ratios))

        total = tf.reduce_sum(counts.documents)
        bias = tf.math.log((counts.documents + 1.0) / total)
        self._bias = tf.Variable(bias)
        # One over the mean square of the features of a document, so that
        # neither their number nor that of labels matters.
        squares = tf.reduce_mean(self._ratios.value() ** 2, axis=1)
        norm = tf.reduce_sum(squares * used[:, 0]) / total
        self._rate = tf.Variable(tf.math.divide_no_nan(1.0, norm))

    @tf.function(input_signature=(_IDS, _LABELS, _WEIGHTS))
    def step(self, ids, labels, weights):
        """Descends the gradient of the cross-entropy of a batch."""
        buckets, rows = _ngrams(self._layer, ids)
        ratios = tf.gather(self._ratios, buckets)
        wrong = tf.nn.softmax(self._logits(ids, buckets, rows))
        wrong -= tf.one_hot(labels, self._layer.num_classes)
        wrong *= self._rate * weights[:, None]
        self._bias.assign_sub(tf.reduce_sum(wrong, axis=0))
        _add(self._weights, buckets, -ratios * tf.gather(wrong, rows))

    def evaluate(self, batches):
        """Mean cross-entropy, and the share of wrong answers."""
        loss, wrong = (
            float(sum(sums)) / sum(len(labels) for _, labels in batches)
            for sums in zip(
                *(self._evaluate(*batch) for batch in batches), strict=True
            )
        )
        return (loss if math.isfinite(loss) else math.inf), wrong

    @tf.function(input_signature=(_IDS, _LABELS))
    def _evaluate(self, ids, labels):
        logits = self._logits(ids, *_ngrams(self._layer, ids))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        is_wrong = tf.argmax(logits, axis=1, output_type=tf.int32) != labels
        return tf.reduce_sum(losses), tf.math.count_nonzero(is_wrong)

    def values(self):
        """The scores and the bias of the layer."""
        return (self._ratios * self._weights).numpy(), self._bias.numpy()

    def _logits(self, ids, buckets, rows):
        terms = tf.gather(self._ratios, buckets)
        terms *= tf.gather(self._weights, buckets)
        count = tf.shape(ids)[0]
        return tf.math.unsorted_segment_sum(terms, rows, count) + self._bias


def _ngrams(layer, ids):
    """The buckets of all n-grams, and the document of each."""
    buckets, is_new = layer.buckets(ids)
    return tf.boolean_mask(buckets, is_new), tf.where(is_new)[:, 0]


def _add(variable, rows, values):
    """Adds to some rows of a variable, in one order whatever the threads."""
    unique, places = tf.unique(rows)
    sums = tf.math.unsorted_segment_sum(values, places, tf.size(unique))
    variable.scatter_add(tf.IndexedSlices(sums, unique))


def _log_shares(counts):
    smoothed = counts + 1.0
    return tf.math.log(smoothed / tf.reduce_sum(smoothed, axis=0))
