"""Files of precomputed features of pictures."""

import io
import math
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
from kseq.data.pictures.feature_preprocessor import FeaturePreprocessor

_LARGEST = 1e30  # factor; its products are finite in float32
_SAMPLE = 1000  # pictures on which the size of features is measured


def read_features(
    path: str | os.PathLike | io.BytesIO,
    grid: FeaturePreprocessor | None = None,
) -> StoredFeatures:
    """Reads features of pictures from an .npz file.

    It has `features`, (N, cells, F) or (N, rows, columns, F), float or int8;
    `names`, N strings; and for int8 `scale`, F factors. Cells without rows and
    columns form a square if possible, otherwise one row.

    Args:
        path: of the file, or its bytes in memory.
        grid: that of a trained model, which the features must fit; None in
            training, which measures their size.

    Raises:
        DataError: the file is broken, features are not finite or do not fit,
            or two pictures have the same name.
    """
    wanted = ("features", "names"), ("scale",)
    if isinstance(path, io.BytesIO):
        arrays = read_arrays(path, path, *wanted)
    else:
        [path] = matching_files(path)[:1]
        with open(path, "rb") as file:
            arrays = read_arrays(path, file, *wanted)
    features, factors = arrays["features"], arrays.get("scale")
    if features.ndim not in (3, 4) or 0 in features.shape:
        raise DataError(
            f"{path}: expected `features` of the shape (pictures, cells, "
            "features) or (pictures, rows, columns, features); found "
            f"{features.shape}."
        )
    check_numbers(path, features)
    if factors is not None and (
        factors.shape != features.shape[-1:]
        or factors.dtype.kind not in "fiu"
        or not (np.abs(factors) < _LARGEST).all()
    ):
        raise DataError(
            f"{path}: expected `scale`, a finite factor for each of the "
            f"{features.shape[-1]} features; found the shape {factors.shape}."
        )
    names = as_names(path, arrays["names"], len(features), "picture")
    check_finite(path, features, names, "picture")
    shape = _grid_shape(features.shape)
    features = features.reshape(len(features), -1, features.shape[-1])
    if grid is None:
        grid = grid_of(features, factors, shape)
    elif features.shape[1:] != (grid.num_cells, grid.num_features):
        raise DataError(
            f"{path}: the model expects {grid.num_cells} cells of "
            f"{grid.num_features} features; found {features.shape[1]} cells "
            f"of {features.shape[2]}."
        )
    return StoredFeatures(names, features, grid, factors)


def grid_of(
    features: np.ndarray,
    factors: np.ndarray | None = None,
    shape: tuple[int, int] | None = None,
) -> FeaturePreprocessor:
    """The preprocessor of features, whose size is measured.

    Args:
        features: (N, cells, F).
        factors: (F,), which multiply them, or None.
        shape: rows and columns; by default a square if possible.
    """
    sample = np.float32(features[:_SAMPLE])
    sample = sample if factors is None else sample * np.float32(factors)
    return FeaturePreprocessor(
        *(shape or _grid_shape(features.shape)),
        features.shape[-1],
        scale=typical_size(sample),
    )


def typical_size(features: np.ndarray) -> float:
    """The root of the mean square of features, or 1 if all are 0."""
    squares = np.square(features, dtype=np.float64)
    return float(np.sqrt(np.mean(squares))) or 1.0


def _grid_shape(shape):
    if len(shape) == 4:
        return shape[1:3]
    side = math.isqrt(shape[1])
    return (side, side) if side**2 == shape[1] else (1, shape[1])
