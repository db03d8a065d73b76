"""Networks of `keras.applications` that make features of pictures."""

import io

import keras
import numpy as np
from numpy.lib.npyio import NpzFile

from kseq.data.files.data_error import DataError
from kseq.data.files.feature_arrays import check_expansion


class PictureNetwork:
    """The convolutions of a network of `keras.applications`.

    Args:
        name: str, such as "EfficientNetB0".
        height: int, of a picture in pixels.
        width: int.
        weights: "imagenet", which Keras downloads once; the path of a file of
            weights; or None for random ones, to be set by `load`.

    Call arguments:
        pixels: (B, H, W, 3) float, from 0 to 255.

    Returns:
        (B, rows, columns, F) float32.

    Raises:
        DataError: there is no such network, or no such weights.

    Example:
    >>> network = PictureNetwork("MobileNetV3Small", 64, 96)
    >>> network(np.zeros((1, 64, 96, 3), "float32")).shape
    TensorShape([1, 2, 3, 576])
    """

    def __init__(self, name: str, height: int, width: int, weights=None):
        network, module = _find(name)
        if not hasattr(module, "preprocess_input"):
            raise DataError(
                "Expected the name of a network of keras.applications, such "
                f"as EfficientNetB0. Received: {name!r:.100}"
            )
        self.name = name
        self._prepare = module.preprocess_input
        try:
            self._model = network(
                include_top=False,
                weights=weights,
                input_shape=(height, width, 3),
            )
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{name} for pictures of {height} x {width} pixels cannot be "
                f"made with the weights {weights}: {reason:.200}"
            ) from error

    def __call__(self, pixels):
        return self._model(self._prepare(pixels), training=False)

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """Rows, columns and number of features."""
        return self._model.output_shape[1:]

    @property
    def variables(self) -> list:
        """The variables of the network."""
        return self._model.variables

    def save(self) -> bytes:
        """The weights as the bytes of an .npz file."""
        file = io.BytesIO()
        np.savez(file, *self._model.get_weights())
        return file.getvalue()

    def load(self, path):
        """Sets the weights from a file that `save` made.

        Raises:
            DataError: it is broken, or of a different network.
        """
        try:
            # Not np.load, which returns an array for an .npy file.
            with open(path, "rb") as opened, NpzFile(opened) as file:
                check_expansion(path, opened, file.zip)
                names = [f"arr_{i}" for i in range(len(file.files))]
                weights = [np.asarray(file[name]) for name in names]
            self._model.set_weights(weights)
        except Exception:  # a broken one raises what it will
            raise DataError(
                f"{path} cannot be read as the weights of {self.name}."
            ) from None


def _find(name):
    """A function of keras.applications and its module, or None twice."""
    found = (
        getattr(keras.applications, name, None) if name[:1].isupper() else None
    )
    module = getattr(found, "__module__", "").rpartition(".")[2]
    return found, getattr(keras.applications, module, None)
