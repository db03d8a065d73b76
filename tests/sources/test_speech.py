from types import SimpleNamespace

import numpy as np

from kseq.sources.speech import FRAMES


def test_whether_features_are_of_recordings(tmp_path):
    """A broken file is named where it is read."""
    path = tmp_path / "a.npz"
    options = SimpleNamespace(features=str(path))
    np.savez(path, lengths=np.array([2]))
    assert FRAMES.is_meant(options)
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\1\2") + 6] = 200  # the version that it needs
    for broken in (content, content[:50], b""):
        path.write_bytes(broken)
        assert not FRAMES.is_meant(options)
