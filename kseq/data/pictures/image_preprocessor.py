"""Encoded pictures to the source inputs of a model."""

import copy

import tensorflow as tf

from kseq.data.files.picture_header import picture_header, upright
from kseq.data.files.source import Source, string_signature
from kseq.data.pictures.feature_preprocessor import FeaturePreprocessor
from kseq.data.pictures.picture_network import PictureNetwork
from kseq.user_error import check_integers

MIDDLE = 128  # the value of a pixel that becomes 0
_MOST_PIXELS = 2048  # on a side


class ImagePreprocessor:
    """Encoded pictures to the source inputs of a model, inside the graph.

    Each picture is decoded, turned upright as its EXIF data say, and stretched
    to a fixed size. The features of its cells are their pixels, from -128 to
    127, or those of a network.

    Every preprocessor has the same attributes and methods.

    Args:
        side: int, pixels on a side of a square cell.
        rows: int, rows of the grid.
        columns: int, columns of the grid.
        scale: float, see `FeaturePreprocessor`.
        network: str, a network of `keras.applications` that has an output for
            each cell, or "" for the pixels. Its weights are random until they
            are loaded.
        weights: see `PictureNetwork`.

    Attributes:
        network: `PictureNetwork`, or None.

    Call arguments:
        image: (B,) string, the bytes of JPEG or PNG files.

    Returns:
        `Source`: `inputs` is `{"source", "source_mask"}`, see
        `FeaturePreprocessor`. Bytes without a JPEG or PNG header, a PNG file
        without its end, and pictures of more than 2**26 pixels, 100 scans or
        32 compressed texts are blank. A file with damaged contents makes the
        whole batch fail.

    Raises:
        ValueError: an argument is not positive.

    Example:
    >>> preprocessor = ImagePreprocessor(side=2, rows=2, columns=3)
    >>> picture = tf.io.encode_png(np.zeros((40, 60, 3), "uint8"))
    >>> source = preprocessor([picture, b"?"])
    >>> source.inputs["source"].shape, source.blank.numpy()
    (TensorShape([2, 6, 12]), array([False,  True]))
    """

    input_name = "image"  # of the served signature
    input_signature = string_signature

    def __init__(
        self,
        side: int,
        rows: int,
        columns: int,
        scale: float = 64.0,
        network: str = "",
        weights: str | None = None,
    ):
        check_integers(
            side=side, rows=rows, columns=columns, maximum=_MOST_PIXELS
        )
        self.side = side
        self.network, num_features = None, 3 * side**2
        if network:
            shape = rows * side, columns * side
            self.network = PictureNetwork(network, *shape, weights)
            *grid, num_features = self.network.output_shape
            if grid != [rows, columns]:
                raise ValueError(
                    f"{network} has outputs for {grid[0]} x {grid[1]} cells of "
                    f"a picture of {shape[0]} x {shape[1]} pixels. Received: "
                    f"{side=}, {rows=}, {columns=}"
                )
        self.grid = FeaturePreprocessor(rows, columns, num_features, scale)

    def __call__(self, image) -> Source:
        image = tf.convert_to_tensor(image)
        is_whole = tf.map_fn(
            lambda image: picture_header(image)["is_picture"],
            image,
            fn_output_signature=tf.TensorSpec((), tf.bool),
        )
        one_pixel = tf.io.encode_png(tf.zeros((1, 1, 3), tf.uint8))
        features = self.features(tf.where(is_whole, image, one_pixel))
        return self.grid.source_of(features, is_whole)

    def features(self, image):
        """(B,) string, all of them pictures -> (B, cells, F) float32."""
        shape = [self.grid.rows * self.side, self.grid.columns * self.side]
        pixels = decode_images(image, shape)
        if self.network is None:
            return cells_of(pixels, self.side) - MIDDLE
        shape = (-1, self.grid.num_cells, self.num_features)
        return tf.reshape(self.network(pixels), shape)

    def with_scale(self, scale: float) -> "ImagePreprocessor":
        """The same, with the same network and a different scale."""
        other = copy.copy(self)
        config = {**self.grid.get_config(), "scale": scale}
        other.grid = FeaturePreprocessor(**config)
        return other

    @property
    def num_features(self) -> int:
        """Number of features of a cell."""
        return self.grid.num_features

    def get_config(self) -> dict:
        """All arguments."""
        grid = {
            name: getattr(self.grid, name)
            for name in ("rows", "columns", "scale")
        }
        network = self.network.name if self.network else ""
        return {"side": self.side, **grid, "network": network}

    @property
    def variables(self) -> list:
        """Those of the network, which an export needs."""
        return self.network.variables if self.network else []

    def tokens(self, inputs) -> tf.Tensor:
        """See `FeaturePreprocessor.tokens`."""
        return self.grid.tokens(inputs)


def cells_of(pixels, side):
    """(B, H, W, 3) -> (B, cells, side * side * 3), row by row."""
    _, height, width, channels = pixels.shape
    rows, columns = height // side, width // side
    pixels = tf.reshape(pixels, (-1, rows, side, columns, side, channels))
    pixels = tf.transpose(pixels, (0, 1, 3, 2, 4, 5))
    return tf.reshape(pixels, (-1, rows * columns, side * side * channels))


def decode_images(images, shape):
    """(B,) string -> (B, *shape, 3) float32, from 0 to 255."""

    def decode(image):
        # `decode_jpeg` also decodes PNG files.
        pixels = tf.io.decode_jpeg(
            image, channels=3, try_recover_truncated=True
        )
        pixels = upright(pixels, picture_header(image)["orientation"])
        pixels = tf.image.resize(pixels, shape, antialias=True)
        return tf.ensure_shape(pixels, (*shape, 3))

    spec = tf.TensorSpec((*shape, 3), tf.float32)
    # Not more: each may need 200 MB.
    return tf.map_fn(
        decode, images, fn_output_signature=spec, parallel_iterations=4
    )
