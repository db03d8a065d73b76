"""The pixels of PNG images."""

import io

import numpy as np
from matplotlib import image
from PIL import Image


def pixels(png):
    """Their colours, from 0 to 1."""
    return image.imread(io.BytesIO(png), format="png")


def grey(png):
    """Their luminance, from 0 to 255."""
    with Image.open(io.BytesIO(png)) as opened:
        return np.asarray(opened.convert("L"), int)
