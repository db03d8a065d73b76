"""Files of precomputed features of speech."""

import os

import numpy as np

from kseq.data.files.data_error import DataError
from kseq.data.files.feature_arrays import (
    as_names,
    check_finite,
    check_numbers,
    read_arrays,
)
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.files.text_files import matching_files
from kseq.data.speech.frame_preprocessor import FramePreprocessor


def read_frames(
    path: str | os.PathLike,
    preprocessor: FramePreprocessor | None = None,
    max_seconds: float = 60.0,
) -> StoredFeatures:
    """Reads features of recordings from an .npz file.

    It has `features`, (frames of all recordings, F), float or int; `lengths`,
    the number of frames of each recording; and `names`, a string for each.

    Args:
        path: of the file.
        preprocessor: that of a trained model, which the features must fit; None
            in training, for one of 100 frames per second.
        max_seconds: of a recording that it may read.

    Raises:
        DataError: the file is broken, features are not finite or do not fit,
            or two recordings have the same name.
    """
    [path] = matching_files(path)[:1]
    with open(path, "rb") as file:
        needed = ("features", "lengths", "names")
        arrays = read_arrays(path, file, needed, ())
    features, lengths = arrays["features"], arrays["lengths"]
    if features.ndim != 2 or 0 in features.shape:
        raise DataError(
            f"{path}: expected `features` of the shape (frames of all "
            f"recordings, features); found {features.shape}."
        )
    check_numbers(path, features)
    if (
        lengths.ndim != 1
        or lengths.dtype.kind not in "iu"
        or (lengths < 1).any()
        or (lengths > len(features)).any()  # a sum could overflow
        or lengths.sum() != len(features)
    ):
        raise DataError(
            f"{path}: expected `lengths`, positive numbers whose sum is that "
            f"of the {len(features)} frames; found {lengths.dtype} of the "
            f"shape {lengths.shape} with the sum {lengths.sum()}."
        )
    names = as_names(path, arrays["names"], len(lengths), "recording")
    parts = np.split(features, np.cumsum(lengths)[:-1])
    check_finite(path, parts, names, "recording")
    if preprocessor is None:
        preprocessor = FramePreprocessor(
            features.shape[1], max_frames=max(int(100 * max_seconds), 1)
        )
    elif features.shape[1] != preprocessor.num_features:
        raise DataError(
            f"{path}: the model expects {preprocessor.num_features} features "
            f"a frame; found {features.shape[1]}."
        )
    return StoredFeatures(names, features, preprocessor, lengths=lengths)
