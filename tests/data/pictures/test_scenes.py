import importlib
import re

import numpy as np
import pytest

from kseq.data.pictures.scenes import GRID, SIDE, SIZES, scenes

# By this name, the package has the function.
MODULE = importlib.import_module("kseq.data.pictures.scenes")


def test_the_same_seed_draws_the_same():
    one, two = (scenes("train", size=20, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.pictures, two.pictures)
    assert one[1:] == two[1:]
    assert scenes("train", size=20, seed=4).objects != one.objects


def test_splits_have_different_scenes(monkeypatch):
    """Of splits that are smaller than they are: drawing takes long."""
    sizes = {split: size // 10 for split, size in SIZES.items()}
    monkeypatch.setattr(MODULE, "SIZES", sizes)
    keys = {
        split: {frozenset(each.items()) for each in scenes(split).objects}
        for split in sizes
    }
    assert {split: len(found) for split, found in keys.items()} == sizes
    assert not keys["train"] & (keys["validation"] | keys["test"])
    assert not keys["validation"] & keys["test"]


def test_descriptions_are_true():
    """Each is read word by word, against the cells of the objects."""
    found = scenes("test", size=100)
    true = {
        "left of": lambda down, right: right < 0 and abs(right) > abs(down),
        "right of": lambda down, right: right > 0 and abs(right) > abs(down),
        "above": lambda down, right: down < 0 and abs(down) > abs(right),
        "below": lambda down, right: down > 0 and abs(down) > abs(right),
    }
    pattern = re.compile("a (.*? .*?) (.*) a (.*)")
    for references, objects in zip(
        found.references, found.objects, strict=True
    ):
        assert len({*references}) == len(references) > 1
        assert len({name.split()[0] for name in objects}) == len(objects)
        for text in references:
            name, relation, other = pattern.fullmatch(text).groups()
            one, two = (divmod(objects[each], GRID) for each in (name, other))
            assert true[relation](one[0] - two[0], one[1] - two[1])


def test_objects_are_in_their_cells():
    """The cells with an object differ from the background, others do not."""
    found = scenes("test", size=50)
    assert found.pictures.shape == (50, GRID * SIDE, GRID * SIDE, 3)
    for picture, objects in zip(found.pictures, found.objects, strict=True):
        cells = picture.astype(float).reshape(GRID, SIDE, GRID, SIDE, 3)
        spread = cells.std(axis=(1, 3)).max(axis=-1).flatten()
        assert {*np.flatnonzero(spread > 20)} == {*objects.values()}


@pytest.mark.parametrize(
    "arguments",
    [
        {"split": "dev"},
        {"split": "train", "size": 0},
        {"split": "test", "size": 1001},
    ],
)
def test_wrong_arguments(arguments):
    with pytest.raises(ValueError, match="Received"):
        scenes(**arguments)
