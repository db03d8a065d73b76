import io

import numpy as np
import pytest
from matplotlib import image

from kseq.pictures import attention_picture


def pixels(png):
    return image.imread(io.BytesIO(png), format="png")


def test_dark_where_the_weight_is():
    tokens = ["one", "two", "three"]
    weights = np.eye(3)[[2, 0, 1]]
    one = pixels(attention_picture(weights, tokens, tokens))
    other = pixels(attention_picture(np.zeros((3, 3)), tokens, tokens))
    assert one.shape == other.shape
    assert (other - one).max() > 0.9  # white has become black
    assert (one - other).max() < 0.01


@pytest.mark.parametrize("token", ["$", "$x$", "日", "\u0301", "न", "</s>"])
def test_any_token_can_be_drawn(token):
    assert attention_picture(np.ones((1, 1)), [token], [token])


def test_a_long_sentence_has_a_larger_picture():
    small = pixels(attention_picture(np.ones((2, 3)), "abc", "ab"))
    large = pixels(attention_picture(np.ones((20, 30)), "c" * 30, "a" * 20))
    assert large.shape[0] > 2 * small.shape[0]
    assert large.shape[1] > 2 * small.shape[1]
