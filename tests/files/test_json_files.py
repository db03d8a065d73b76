import json

import numpy as np

from kseq.files.json_files import to_json


def test_numbers_of_numpy_are_numbers():
    """A size may be one, in the config of a search for example."""
    value = {"beam_size": np.int64(4), "path": 1j, "plain": [1, 2.5, None]}
    found = json.loads(to_json(value))
    assert found == {"beam_size": 4, "path": "1j", "plain": [1, 2.5, None]}
