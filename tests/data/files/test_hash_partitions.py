import numpy as np
import pytest

from kseq.data.files import hash_partitions, source_hashes
from kseq.data.files.hash_partitions import SortedHashes, held_out_hashes
from kseq.data.files.source_hashes import NUM_HASHES, choose_held_out


def sorted_at_once(hashes, most):
    """What is chosen, in another way."""
    most = min(max(len(hashes) // 10, 1), most)
    sources, counts = np.unique(hashes, return_counts=True)
    order = np.argsort(np.where(counts <= most, 0, counts), kind="stable")
    fitting = np.count_nonzero(np.cumsum(counts[order]) <= most)
    chosen = min(max(fitting, 1), len(sources) - 1)
    return np.sort(sources[order[:chosen]])


@pytest.mark.parametrize("in_memory", [2, 50, 10_000])
@pytest.mark.parametrize("groups", [1, 2, 3, 40, 3000])
def test_held_out_as_if_all_were_in_memory(
    tmp_path, monkeypatch, groups, in_memory
):
    monkeypatch.setattr(hash_partitions, "_IN_MEMORY", in_memory)
    draw = np.random.default_rng()
    for most in (1, 20, 1000):
        monkeypatch.setattr(source_hashes, "MOST_HELD_OUT", most)
        sources = draw.integers(0, NUM_HASHES, groups)
        chances = draw.dirichlet(np.full(groups, 0.3))
        hashes = draw.choice(sources, draw.integers(1, 400), p=chances)
        path = str(tmp_path / "hashes")
        parts = [np.sort(part) for part in np.array_split(hashes, 3)]
        np.concatenate(parts).tofile(path)
        starts = np.cumsum([0, *map(len, parts)])
        found = held_out_hashes(
            [
                SortedHashes(path, int(start), len(part))
                for start, part in zip(starts, parts, strict=False)
            ]
        )
        assert found.tolist() == choose_held_out([hashes], len(hashes)).tolist()
        assert found.tolist() == sorted_at_once(hashes, most).tolist()
