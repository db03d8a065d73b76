"""A bag of n-grams beside a network."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.ops import padding_mask
from kseq.user_error import check_integers

_MOST_PIECES = 10  # of an n-gram
_MOST_BUCKETS = 2**20
_FACTOR = 1999  # a prime; times the buckets, and a piece more, it fits int32
_FINGERPRINTS = 65_521  # a prime
_OTHER_FACTOR = 31_981  # a prime; times the fingerprints, the same
_MOST_SCORES = 2**23  # 32 MB, whatever the number of classes


@keras.saving.register_keras_serializable(package="kseq")
class NgramLogits(keras.layers.Layer):
    """The mean of a network's answer and that of a bag of n-grams.

        bag_c = sum of scores[hash(g), c] over the n-grams g of a document
        logits = (log softmax(network) + log softmax(bag)) / 2

    An n-gram counts once, however often it occurs in a document. A bucket has
    the scores of one n-gram, its owner, whose fingerprint distinguishes it from
    others with the same hash, which are ignored. In training the logits are
    those of the network alone, which learns independently of the bag. Owners
    and scores are not trainable weights: `kseq.training.fit_ngrams` fits them.

    Args:
        num_classes: int, C.
        ngrams: int, maximum pieces of an n-gram, up to 10; 0 for no bag.
        num_buckets: int or None, up to 2^20, which n-grams are hashed to. By
            default 2^20, or half of it, a quarter and so on, so that there are
            at most 2^23 scores.
        dtype: dtype policy or its name.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        logits: (B, C) float, of the network.
        ids: (B, L, W) int, the pieces of sentences, padded with PAD.
        training: bool.

    Returns:
        (B, C) float.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> layer = NgramLogits(2, ngrams=2)
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> layer(np.zeros((2, 2)), ids).shape
        TensorShape([2, 2])

    Reference:
        Wang and Manning 2012, aclanthology.org/P12-2018; hashed as in Joulin
        et al. 2017, aclanthology.org/E17-2068. The mean is a product of
        experts, Hinton 2002, doi.org/10.1162/089976602760128018.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        ngrams: int,
        num_buckets: int | None = None,
        dtype: str | keras.DTypePolicy | None = "float32",
        **kwargs,
    ):
        check_integers(num_classes=num_classes)
        check_integers(ngrams=ngrams, minimum=0, maximum=_MOST_PIECES)
        if num_buckets is None:
            share = max(_MOST_SCORES // num_classes, 1)
            num_buckets = min(_MOST_BUCKETS, 2 ** (share.bit_length() - 1))
        check_integers(num_buckets=num_buckets, maximum=_MOST_BUCKETS)
        super().__init__(dtype=dtype, **kwargs)
        self.num_classes = num_classes
        self.ngrams = ngrams
        self.num_buckets = num_buckets

    def build(self, logits_shape, ids_shape):
        if self.ngrams:
            fitted = {"initializer": "zeros", "trainable": False}
            shape = (self.num_buckets, self.num_classes)
            self.scores = self.add_weight(name="scores", shape=shape, **fitted)
            self.bias = self.add_weight(name="bias", shape=shape[1:], **fitted)
            self.owners = self.add_weight(
                name="owners", shape=shape[:1], dtype="int32", **fitted
            )

    def call(self, logits, ids, training: bool | None = None):
        if training or not self.ngrams:
            return logits
        buckets, is_new = self.buckets(ids)
        scores = ops.take(self.scores, buckets, axis=0)
        scores = ops.where(is_new[:, :, None], scores, 0.0)
        bag = ops.sum(scores, axis=1) + self.bias
        return (ops.log_softmax(logits) + ops.log_softmax(bag)) / 2

    def buckets(self, ids):
        """The buckets of the n-grams of documents that own them.

        Args:
            ids: see above.

        Returns:
            A tuple: (B, K) int32, sorted, and (B, K) bool, whether it is an
            n-gram, and the first of its bucket.
        """
        buckets, fingerprints = self.hashes(ids)
        is_owner = ops.take(self.owners, buckets, axis=0) == fingerprints
        is_owner = ops.logical_and(is_owner, fingerprints > 0)
        return first_places(buckets, is_owner, self.num_buckets)

    def hashes(self, ids):
        """The hashes of the n-grams of documents, as often as they occur.

        Args:
            ids: see above.

        Returns:
            A tuple of (B, K) int32: the bucket of each, and its fingerprint,
            from 1 to 65,521; 0 where there is no n-gram.
        """
        batch, sentences, pieces = ops.shape(ids)
        ids = ops.cast(ids, "int32")
        is_ngram = padding_mask(ids)  # padding may be on the left
        following = ops.pad(ids, [[0, 0], [0, 0], [0, self.ngrams - 1]])
        bucket = fingerprint = ops.zeros_like(ids)
        buckets, fingerprints = [], []
        for place in range(self.ngrams):
            last = following[:, :, place : place + pieces]
            bucket = (bucket * _FACTOR + last + 1) % self.num_buckets
            fingerprint = fingerprint * _OTHER_FACTOR + last + 1
            fingerprint %= _FINGERPRINTS
            is_ngram = ops.logical_and(is_ngram, padding_mask(last))
            buckets.append(bucket)
            fingerprints.append(ops.where(is_ngram, fingerprint + 1, 0))
        shape = batch, sentences * pieces * self.ngrams
        return tuple(
            ops.reshape(ops.stack(each, axis=-1), shape)
            for each in (buckets, fingerprints)
        )

    def compute_output_shape(self, logits_shape, ids_shape):
        return logits_shape

    def compute_output_spec(self, logits, ids, training=None):
        return keras.KerasTensor(logits.shape, dtype=self.compute_dtype)

    def get_config(self):
        return config_of(self, NgramLogits)


def first_places(places, is_counted, size):
    """Marks each place of a row once.

    Args:
        places: (B, K) int32, below `size`.
        is_counted: (B, K) bool, others are left out.
        size: int.

    Returns:
        A tuple: (B, K) int32, sorted, and (B, K) bool, whether it is counted
        and the first of its value.
    """
    places = ops.sort(ops.where(is_counted, places, size), axis=-1)
    before = ops.pad(places, [[0, 0], [1, 0]], constant_values=-1)
    is_new = ops.logical_and(places != before[:, :-1], places < size)
    return ops.minimum(places, size - 1), is_new
