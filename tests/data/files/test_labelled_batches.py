import itertools

import numpy as np
import pytest

from kseq.data import FramePreprocessor, StoredFeatures, labelled_batches
from kseq.user_error import ArgumentError

LENGTHS = [3, 9, 4, 1, 8, 2, 9]
LABELS = ["yes", "no", "yes", "yes", "no", "yes", "yes"]


def stored():
    frames = np.random.default_rng(0).normal(size=(sum(LENGTHS), 2))
    names = [f"{number}.wav" for number in range(len(LENGTHS))]
    return StoredFeatures(
        names, frames, FramePreprocessor(2), lengths=np.array(LENGTHS)
    )


def batches_of(numbers, count, **options):
    batches = labelled_batches(
        stored(),
        numbers,
        [LABELS[number] for number in numbers],
        ("no", "yes"),
        batch_tokens=12,
        seed=1,
        **options,
    )
    return itertools.islice(batches, count)


def test_each_recording_has_its_frames_and_its_label():
    numbers = [6, 0, 1, 2, 4, 5]  # not all of what is stored
    features = stored()
    expected = {n: features.inputs([n])["source"].numpy()[0] for n in numbers}
    seen = set()
    for inputs, labels, weights in batches_of(numbers, 30):
        source, mask = (inputs[n].numpy() for n in ("source", "source_mask"))
        assert mask.sum() <= 12
        np.testing.assert_array_equal(weights, np.ones(len(labels)))
        for row, real, label in zip(source, mask, labels.numpy(), strict=True):
            [number] = [
                number
                for number, frames in expected.items()
                if frames.shape == row[real].shape
                and np.allclose(frames, row[real], atol=1e-6)
            ]
            assert ("no", "yes")[label] == LABELS[number]
            seen.add(number)
    assert seen == set(numbers)


def test_balanced_labels_have_the_same_sum_of_weights():
    numbers = range(len(LENGTHS))
    of_label = {}
    for _, labels, weights in batches_of(numbers, 10, balanced=True):
        of_label.update(zip(labels.numpy(), weights.numpy(), strict=True))
    assert of_label[0] * LABELS.count("no") == of_label[1] * LABELS.count("yes")


def test_each_number_has_one_label():
    with pytest.raises(ArgumentError, match="2 labels, 3 examples"):
        labelled_batches(
            *(stored(), [0, 1, 2], ["yes", "no"], ("no", "yes")),
            batch_tokens=12,
            seed=1,
        )
