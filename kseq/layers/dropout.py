"""Dropout with half the random numbers, of whole pieces and of sentences."""

import keras
from keras import ops

from kseq.control_tokens import PAD
from kseq.layers.random_numbers import random_bits, random_uniform
from kseq.ops import padding_mask
from kseq.user_error import check_number

_DRAWS = 2**15  # a random integer of 30 bits is two integers of 15 bits
_STRIDE = 1_000_003  # a prime, between the seeds of two numbers


@keras.saving.register_keras_serializable(package="kseq")
class Dropout(keras.layers.Dropout):
    """Sets features to zero at random in training, and scales up the others.

        output = inputs * kept / (1 - rate)

    It differs from the Keras layer in that one random integer decides for two
    features, with the rate rounded to 1/32768, which takes two thirds of the
    time on a CPU, and in that each replica of a strategy drops different
    features.

    Args:
        rate: float in [0, 1], rate at which features are dropped.
        noise_shape: must be None.
        seed: int, or None for a random seed.
        **kwargs: see `keras.layers.Dropout`.

    Call arguments:
        inputs: (..., D) float.
        training: bool, whether to apply dropout.

    Returns:
        (..., D), in the dtype of the layer.

    Example:
        >>> Dropout(0.5)(np.array([1.0, 2.0])).numpy()
        array([1., 2.], dtype=float32)

    Reference:
        Srivastava et al. 2014, JMLR 15, section 4.
    """

    def __init__(
        self,
        rate: float,
        noise_shape: None = None,
        seed: int | None = None,
        **kwargs,
    ):
        if noise_shape is not None:
            raise ValueError(
                f"noise_shape must be None. Received: {noise_shape=}"
            )
        check_number("rate", rate, 0, 1)
        super().__init__(rate, seed=seed, **kwargs)

    def call(self, inputs, training: bool = False):
        if not self._drops(training):
            return inputs
        return self._drop(inputs, self.seed_generator)

    def repeatable(self, training: bool | None = False):
        """Dropout that drops the same features whenever it is asked to.

        Args:
            training: bool, whether to apply dropout.

        Returns:
            a function of inputs and a number, which decides with their shape
            what is dropped; or None where nothing is.
        """
        if not self._drops(training):
            return None
        seed, count = ops.unstack(self.seed_generator.next())

        def drop(inputs, number):
            step = ops.cast(number, seed.dtype) * _STRIDE
            return self._drop(inputs, _Seed(ops.stack([seed + step, count])))

        return drop

    def _drops(self, training):
        return training and round(self.rate * _DRAWS) > 0

    def _drop(self, inputs, generator):
        dropped = round(self.rate * _DRAWS)
        if dropped == _DRAWS:
            return ops.zeros_like(inputs)

        *outer, size = ops.shape(inputs)
        pairs = random_bits((*outer, (size + 1) // 2), generator)
        # As floats, which hold 15 bits exactly wherever they are: a GPU
        # compares no integers, TensorFlow would copy all of them to the CPU.
        low, high = (
            ops.cast(ops.bitwise_and(pairs, bits), "float32")
            for bits in (_DRAWS - 1, (_DRAWS - 1) * _DRAWS)
        )
        kept = ops.concatenate(
            [low >= dropped, high >= dropped * _DRAWS], axis=-1
        )[..., :size]
        return inputs * (ops.cast(kept, inputs.dtype) / (1 - self.rate))


class _Seed(keras.random.SeedGenerator):
    """A generator of one seed, (2,) int."""

    def __init__(self, seed):
        self.seed = seed  # and no state

    def next(self, ordered=True):
        return self.seed


@keras.saving.register_keras_serializable(package="kseq")
class PieceDropout(Dropout):
    """Sets whole vectors to zero at random in training, and scales up the rest.

        output_t = inputs_t * kept_t / (1 - rate)

    A model that has to read without some of the pieces learns to use the
    others too, and a decoder to rely more on the source.

    Args:
        rate: float in [0, 1], rate at which vectors are dropped.
        noise_shape: must be None.
        seed: int, or None for a random seed.
        **kwargs: see `keras.layers.Dropout`.

    Call arguments:
        inputs: (..., T, E) float, embeddings of pieces.
        training: bool, whether to apply dropout.

    Returns:
        (..., T, E), in the dtype of the layer.

    Example:
        >>> PieceDropout(0.5)(np.array([[1.0, 2.0]])).numpy()
        array([[1., 2.]], dtype=float32)

    Reference:
        Iyyer et al. 2015, aclanthology.org/P15-1162, section 3.1; Gal and
        Ghahramani 2016, arXiv:1512.05287, section 4.2, and Sennrich et al.
        2016, arXiv:1606.02891, section 3.2, for source and target of
        translation. Each occurrence of a piece is dropped on its own, and the
        remaining ones are scaled up.
    """

    def call(self, inputs, training: bool = False):
        if not self._drops(training):
            return inputs
        pieces = ops.ones(ops.shape(inputs)[:-1], dtype=self.compute_dtype)
        return inputs * self._drop(pieces, self.seed_generator)[..., None]


@keras.saving.register_keras_serializable(package="kseq")
class SentenceDropout(Dropout):
    """Removes sentences of documents at random in training.

    The label of a document is usually that of most of its sentences too, so
    each epoch reads different documents. At least one sentence with pieces
    remains.

    Args:
        rate: float in [0, 1], rate at which sentences are removed.
        noise_shape: must be None.
        seed: int, or None for a random seed.
        **kwargs: see `keras.layers.Dropout`.

    Call arguments:
        ids: (B, L, W) int, pieces of sentences, padded with PAD.
        training: bool, whether to remove sentences.

    Returns:
        (B, L, W) int, with PAD in the removed sentences.

    Example:
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> SentenceDropout(1.0)(ids, training=True).numpy().any((1, 2))
        array([ True,  True])
    """

    def call(self, ids, training: bool = False):
        if not training or not self.rate:
            return ids
        has_pieces = ops.any(padding_mask(ids), axis=-1)
        draws = random_uniform(ops.shape(has_pieces), self.seed_generator)
        draws = ops.where(has_pieces, draws, -1.0)
        highest = ops.max(draws, axis=-1, keepdims=True, initial=-1.0)
        kept = draws >= ops.minimum(highest, self.rate)
        return ops.where(kept[..., None], ids, PAD)

    def compute_output_spec(self, ids, training=False):
        return keras.KerasTensor(ids.shape, dtype=ids.dtype)
