import functools

import pytest
import tensorflow as tf

from kseq.data import AudioPreprocessor


@pytest.fixture(scope="module")
def traced_once():
    """Features of recordings are traced once for all corpora of a module.

    Otherwise each corpus, and each part of a folder that is prepared, takes
    half a second, whatever its recordings are.
    """
    features = AudioPreprocessor.features

    @functools.cache
    def traced(**config):
        return tf.function(
            functools.partial(features, AudioPreprocessor(**config)),
            input_signature=[tf.TensorSpec((None,), tf.string)],
            autograph=False,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            AudioPreprocessor,
            "features",
            lambda self, audio: traced(**self.get_config())(audio),
        )
        yield
