import numpy as np

from kseq.data.files import source_hashes as module
from kseq.data.files.source_hashes import choose_held_out, source_hashes

TEXTS = [b"", b"a", " \u00a0 b\u2028".encode(), b"\xff\x00c", b"a b"]


def test_space_at_the_ends_does_not_count():
    hashes = source_hashes(TEXTS)
    assert len(set(hashes)) == len(TEXTS)
    assert (hashes == source_hashes(b" %b\t\n" % text for text in TEXTS)).all()


def test_no_text_has_no_hash():
    assert source_hashes([]).shape == (0,)


def test_frequent_sources_are_held_out_last(monkeypatch):
    often = np.repeat([1, 2], 50)
    hashes = np.concatenate([often, np.arange(3, 13)])

    assert choose_held_out([hashes], 110).tolist() == [*range(3, 13)]
    monkeypatch.setattr(module, "MOST_HELD_OUT", 5)
    assert choose_held_out([hashes], 110).tolist() == [*range(3, 8)]
    assert choose_held_out([often], 100).tolist() == [1]
    assert choose_held_out([often[:9]], 9).tolist() == []
