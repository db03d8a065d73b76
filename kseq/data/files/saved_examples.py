"""Names, texts and numbers of prepared pictures or recordings."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kseq.data.files.ragged_array import RaggedArray


def save_examples(
    path: str | os.PathLike,
    names: Sequence[str],
    texts: Sequence[str],
    numbers: Sequence[int],
    media: Callable[[str], bytes] | None = None,
):
    """Writes files that begin with a path.

    Args:
        path: see above.
        names: of the pictures or recordings.
        texts: of each, without newlines.
        numbers: of their features.
        media: function of a name, the bytes of a file that is to be saved, or
            None.
    """
    Path(f"{path}.names").write_bytes(b"\0".join(map(os.fsencode, names)))
    Path(f"{path}.texts").write_bytes("\n".join(texts).encode())
    np.array(numbers, np.int64).tofile(f"{path}.numbers")
    if media is None:
        return
    ends = [0]
    with open(f"{path}.files.values", "wb") as file:
        for name in names:
            file.write(media(name))
            ends.append(file.tell())
    np.array(ends, np.int64).tofile(f"{path}.files.offsets")


def open_examples(path: str | os.PathLike):
    """What `save_examples` has written: its arguments after the path."""
    names = Path(f"{path}.names").read_bytes().split(b"\0")
    names = list(map(os.fsdecode, names))
    texts = Path(f"{path}.texts").read_text("utf-8").split("\n")
    numbers = np.fromfile(f"{path}.numbers", np.int64).tolist()
    if not os.path.isfile(f"{path}.files.values"):
        return names, texts, numbers, None
    size = os.path.getsize(f"{path}.files.values")
    rows = RaggedArray.open(f"{path}.files", "uint8", (size,))
    places = {name: place for place, name in enumerate(names)}

    def media(name):
        return rows[places[name]].tobytes()

    return names, texts, numbers, media
