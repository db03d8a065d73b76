"""Features of the pictures of a folder."""

import io
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.tar_media import Media
from kseq.data.pictures.feature_files import read_features, typical_size
from kseq.data.pictures.image_preprocessor import ImagePreprocessor
from kseq.terminal import progress

BATCH = 32
_SIDE = 32  # pixels for each output of the networks
_FEATURES, NETWORK = "features.npz", "network.npz"


class NetworkOptions(NamedTuple):
    """The options of the network that computes features.

    Args:
        name: see `PictureNetwork`.
        weights: see `PictureNetwork`.
        cells: int, of a picture on each side, of 32 pixels.
    """

    name: str = "EfficientNetB0"
    weights: str = "imagenet"
    cells: int = 7

    def preprocessor(self, weights) -> ImagePreprocessor:
        """The network with weights, see `PictureNetwork`."""
        return ImagePreprocessor(
            *(_SIDE, self.cells, self.cells),
            network=self.name,
            weights=weights or None,
        )

    def loaded(self, path) -> ImagePreprocessor:
        """The network with the weights of a file of `PictureNetwork.save`."""
        preprocessor = self.preprocessor(None)
        preprocessor.network.load(path)
        return preprocessor


def computed_features(names, folder, options, kept):
    """Features of pictures, computed, or loaded from the folder `kept`.

    Returns:
        StoredFeatures, the ImagePreprocessor, and {name: bytes} of the files to
        be saved.
    """
    if kept is not None:
        preprocessor = options.loaded(kept / NETWORK)
        stored = read_features(kept / _FEATURES)
        files = {}
    else:
        preprocessor = options.preprocessor(options.weights)
        content = picture_features(names, folder, preprocessor)
        stored = read_features(io.BytesIO(content))
        files = {
            _FEATURES: content,
            NETWORK: preprocessor.network.save(),
        }
    return stored, preprocessor.with_scale(stored.preprocessor.scale), files


def picture_features(
    names: list[str], folder: Media, preprocessor: ImagePreprocessor
) -> bytes:
    """Computes the features of pictures, once for all epochs.

    Returns:
        The bytes of an .npz file, see `read_features`.

    Raises:
        DataError: a picture cannot be read, or its features are not finite.
    """
    parts, size = [], None
    with progress("Computing features", len(names), "pictures") as advance:
        for found in batches_of_cells(names, folder, preprocessor):
            # Scaled to size 1, because float16 has neither 1e-10 nor 1e10.
            size = size or typical_size(found)
            parts.append((found / size).astype(np.float16))
            advance(len(found))
    file = io.BytesIO()
    features = np.concatenate(parts)
    scale = np.full(features.shape[-1], size)
    np.savez(file, features=features, names=np.array(names), scale=scale)
    return file.getvalue()


def batches_of_cells(
    names: list[str], folder: Media, preprocessor: ImagePreprocessor
) -> Iterator[np.ndarray]:
    """The features of pictures, (`BATCH`, cells, F) float32, or fewer.

    Raises:
        DataError: see `picture_features`.
    """
    compute = tf.function(
        preprocessor.features,
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )
    for start in range(0, len(names), BATCH):
        batch = names[start : start + BATCH]
        images = tf.constant([folder(name) for name in batch])
        found = compute(images).numpy()
        for name, features in zip(batch, found, strict=True):
            if not np.isfinite(features).all():
                raise DataError(
                    f"{folder.title(name)}: its features are not finite."
                )
        yield found
