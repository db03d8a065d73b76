"""Features of recordings."""

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.speech.audio_preprocessor import AudioPreprocessor
from kseq.terminal import progress

_BATCH = 64
SILENT = "All recordings are silent or empty."


def recorded_features(
    names: list[str],
    audio: Callable[[str], bytes],
    preprocessor: AudioPreprocessor,
) -> StoredFeatures:
    """Computes the features of recordings, once for all epochs.

    Args:
        names: of the recordings.
        audio: function of a name, the bytes of its WAV file.
        preprocessor: AudioPreprocessor.

    Returns:
        StoredFeatures of the recordings that are not silent. The mean of each
        feature over a recording is 0.

    Raises:
        DataError: all are silent or empty.
    """
    with progress("Computing features", len(names), "recordings") as advance:
        features, lengths = frames_of(names, audio, preprocessor, advance)
    kept = [name for name, length in zip(names, lengths, strict=True) if length]
    if not kept:
        raise DataError(SILENT)
    return StoredFeatures(
        kept,
        features,
        preprocessor.frames,
        lengths=np.array([length for length in lengths if length]),
    )


def frames_of(
    names: list[str],
    audio: Callable[[str], bytes],
    preprocessor: AudioPreprocessor,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[np.ndarray, list[int]]:
    """The frames of all recordings, float16, and how many each has.

    `advance` is called with the number of recordings that are done.
    """
    compute = _traced(**preprocessor.get_config())
    parts, lengths = [], []
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        found = compute(tf.constant([audio(name) for name in batch]))
        for frames in np.split(found.values.numpy(), found.row_limits()[:-1]):
            # A mean of 0, because float16 is imprecise for large numbers.
            mean = frames.mean(axis=0) if len(frames) else 0
            parts.append((frames - mean).astype(np.float16))
            lengths.append(len(frames))
        advance(len(batch))
    return np.concatenate(parts), lengths


@functools.cache
def _traced(**config):
    """The features of a preprocessor: one graph for all corpora and parts."""
    return tf.function(
        AudioPreprocessor(**config).features,
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )
