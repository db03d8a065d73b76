import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import (
    DataError,
    masked_prediction_batches,
    piece_prediction_batches,
)

TEXT = np.random.default_rng(0).integers(4, 900, 700)


def ids_of(pieces):
    """In documents of three sentences of five pieces, or what remains."""
    sentences = [pieces[i : i + 5] for i in range(0, len(pieces), 5)]
    documents = [sentences[i : i + 3] for i in range(0, len(sentences), 3)]
    documents = [
        [list(pieces) for pieces in document] for document in documents
    ]
    return tf.ragged.constant(documents, dtype="int32", ragged_rank=2)


BOTH = piece_prediction_batches, masked_prediction_batches


def some(count, pieces=TEXT, batch_pieces=256, seed=1, make=BOTH[0]):
    batches = make(ids_of(pieces), batch_pieces=batch_pieces, seed=seed)
    return list(itertools.islice(batches.as_numpy_iterator(), count))


def test_rows_are_running_text():
    found = " ".join(map(str, TEXT))
    starts = set()
    for inputs, labels, weights in some(20):
        assert inputs["source_ids"].shape == (4, 64)
        assert labels.shape == weights.shape == (4, 62, 2)
        assert not labels.any()
        assert weights.all()
        for row in inputs["source_ids"]:
            assert " ".join(map(str, row)) in found
            starts.add(row[0])
    assert len(starts) > 40


def test_the_last_piece_is_read_too():
    short = TEXT[:65]
    rows = [
        tuple(r) for inputs, *_ in some(10, short) for r in inputs["source_ids"]
    ]
    assert set(rows) == {tuple(short[:64]), tuple(short[1:])}


def test_candidates_are_drawn_as_often_as_they_occur():
    pieces = np.array([4] * 90 + [5] * 30)
    drawn = []
    for inputs, *_ in some(10, pieces):
        candidates = inputs["candidates"]
        assert candidates.shape == (4, 1024)
        assert (candidates == candidates[0]).all()
        drawn.extend(candidates[0])
    assert set(drawn) == {4, 5}
    assert np.mean(np.array(drawn) == 4) == pytest.approx(0.75, abs=0.03)


def test_some_pieces_are_masked():
    """As many in each row; the rest of the row is running text."""
    found = " ".join(map(str, TEXT))
    hidden, same, starts = [], [], set()
    for inputs, labels, weights in some(20, batch_pieces=1024, make=BOTH[1]):
        source_ids, places, pieces = map(
            inputs.get, ("source_ids", "places", "pieces")
        )
        source_ids = source_ids.copy()
        assert source_ids.shape == (4, 256)
        assert pieces.shape == labels.shape == weights.shape == (4, 38)
        assert not labels.any()
        assert weights.all()
        assert (np.diff(places) > 0).all()
        seen = np.take_along_axis(source_ids, places, axis=1)
        hidden.append(seen == 0)
        same.append(seen == pieces)
        assert (source_ids == 0).sum() == hidden[-1].sum()
        np.put_along_axis(source_ids, places, pieces, axis=1)
        for row in source_ids:
            assert " ".join(map(str, row)) in found
            starts.add(row[0])
    assert len(starts) > 40
    assert np.mean(hidden) == pytest.approx(0.8, abs=0.03)
    assert np.mean(same) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("make", BOTH)
def test_drawn_by_the_seed(make):
    def rows(seed):
        return [
            inputs["source_ids"].tolist()
            for inputs, *_ in some(5, seed=seed, make=make)
        ]

    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


@pytest.mark.parametrize("make", BOTH)
def test_position_can_be_saved(tmp_path, make):
    def batches():
        return iter(make(ids_of(TEXT), batch_pieces=256, seed=1))

    iterator = batches()
    for _ in range(5):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
    expected = [next(iterator)[0] for _ in range(3)]

    other = batches()
    tf.train.Checkpoint(iterator=other).read(path).assert_consumed()
    for inputs in expected:
        found = next(other)[0]
        for name, values in inputs.items():
            np.testing.assert_array_equal(found[name], values)


def test_little_text_and_small_batches():
    [(inputs, labels, _)] = some(1, TEXT[:3], batch_pieces=2)
    assert inputs["source_ids"].tolist() == [TEXT[:3].tolist()]
    assert labels.shape == (1, 1, 2)


def test_too_little_text():
    with pytest.raises(DataError, match="found 2 in all"):
        some(1, TEXT[:2])
