import numpy as np
import tensorflow as tf

from kseq.data.files.source_hashes import (
    are_among,
    choose_held_out,
    source_hashes,
)

TEXTS = [b"", b"a", " \u00a0 b\u2028".encode(), b"\xff\x00c", b"a b"]


def test_python_and_a_data_set_agree():
    hashes = source_hashes(TEXTS)
    held_out = np.sort(hashes[1:3])

    assert len(set(hashes)) == len(TEXTS)
    assert (hashes == source_hashes(b" %b\t\n" % text for text in TEXTS)).all()
    data = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3)
    found = data.map(lambda texts: are_among(texts, held_out)).unbatch()
    expected = [False, True, True, False, False]
    assert list(found.as_numpy_iterator()) == expected


def test_no_text_has_no_hash():
    assert source_hashes([]).shape == (0,)


def test_frequent_sources_are_held_out_last():
    often = np.repeat([1, 2], 50)
    hashes = np.concatenate([often, np.arange(3, 13)])

    assert choose_held_out(hashes, most=11).tolist() == [*range(3, 13)]
    assert choose_held_out(hashes, most=5).tolist() == [*range(3, 8)]
    assert choose_held_out(often, most=5).tolist() == [1]
    assert choose_held_out(often[:9], most=5).tolist() == []
