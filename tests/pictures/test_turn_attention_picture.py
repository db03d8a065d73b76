import io

import numpy as np
import pytest
from matplotlib import image

from kseq.pictures import turn_attention_picture

SOURCE = ["▁a", "</s>", "▁b", "▁c", "</s>"]


def darkness(png, columns):
    """Of the rows of the answer, in parts of the width of the picture."""
    pixels = image.imread(io.BytesIO(png), format="png")[:, :, :3]
    dark = (pixels.max(axis=2) < 0.05).mean(axis=0)
    return [part.mean() for part in np.array_split(dark, columns)]


def test_turns_and_words_are_dark_where_their_weight_is():
    """On the left the turns, and right of them the words."""
    first, second = (
        darkness(
            turn_attention_picture(np.eye(5)[[place] * 6], SOURCE, "x" * 6), 8
        )
        for place in (0, 3)
    )
    difference = np.array(second) - first
    assert difference[:2].max() > 0.1 and difference[:2].min() < -0.1
    assert difference[2:].max() > 0.1 and difference[2:].min() < -0.1


@pytest.mark.parametrize("source", [["a"], ["</s>"], ["$", "日"], SOURCE])
def test_any_tokens_can_be_drawn(source):
    weights = np.ones((2, len(source))) / len(source)
    assert turn_attention_picture(weights, source, ["$x$", "</s>"])
