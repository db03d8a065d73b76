"""Prepares pictures for training: computes their features once."""

import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from kseq.data.files.corpora import logged
from kseq.data.files.feature_parts import (
    PART_SIZE,
    compute_features,
    files_hash,
)
from kseq.data.files.media_folder import read_picture
from kseq.data.files.named_texts import lines_of_names
from kseq.data.files.prepare_files import prepare_files
from kseq.data.files.ragged_array import mapped
from kseq.data.files.saved_examples import save_examples
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.files.tar_media import open_media
from kseq.data.pictures.caption_corpus import (
    KIND,
    CaptionCorpus,
    corpus_of_tables,
    open_prepared_captions,
)
from kseq.data.pictures.caption_table import (
    picture_names,
    pictures_of,
    read_caption_tables,
)
from kseq.data.pictures.feature_files import (
    grid_of,
    read_features,
    typical_size,
)
from kseq.data.pictures.picture_features import (
    BATCH,
    NETWORK,
    NetworkOptions,
    batches_of_cells,
)
from kseq.files.atomic_write import atomic_write


def prepare_captions(
    folder: str | os.PathLike,
    train: str | os.PathLike,
    validation: str | os.PathLike | None = None,
    columns: Sequence[str] = (),
    *,
    features: str | os.PathLike = "",
    images: str | os.PathLike = "",
    network: NetworkOptions | None = None,
    plain: bool = False,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> CaptionCorpus:
    r"""Computes the features of pictures once, and writes a folder.

    The captions and the held-out part are those of `read_caption_corpus`.
    Training maps the features into memory and reads no picture: the folder also
    has the captions, the weights of the network, and the pictures of
    validation. See `prepare_speech` for resuming and for tokenizers.

    Args:
        folder: where to write.
        train: see `read_caption_corpus`.
        validation: see `read_caption_corpus`.
        columns: see `read_caption_corpus`.
        features: see `read_caption_corpus`. They are only made readable without
            loading them.
        images: see `read_caption_corpus`.
        network: see `read_caption_corpus`.
        plain: see `read_caption_corpus`.
        processes: see `prepare_pairs`.
        beam: see `prepare_pairs`.
        log: whether to log the facts, and the problems as warnings.
        part_size: bytes of pictures that a process reads together.

    Raises:
        DataError: a file cannot be used, or the folder was prepared from
            different files or with different options.
        DiskError: the disk is full.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("a\tA dog.\na\tDogs.\nb\tA cat.")
    >>> features = np.ones((3, 4, 2), "float16")
    >>> np.savez("a.npz", features=features, names=["a", "b", "c"])
    >>> corpus = prepare_captions("prepared", "a.tsv", features="a.npz")
    >>> [*corpus.train.references], corpus.features[0].shape
    ([['A dog.', 'Dogs.']], (4, 2))
    """
    network = network or NetworkOptions()
    options = {
        "columns": [*columns],
        "plain": plain,
        "network": None if features else network._asdict(),
        "part_size": part_size,
    }
    tables = read_caption_tables(
        *(train, validation, columns, plain, features, images)
    )
    media = pictures_of(tables, images)
    sizes = {}
    if not features:
        sizes = {name: media.size(name) for name in picture_names(tables)}

    def prepare(prepared, planned):
        if features:
            stored = read_features(features)
            stored.features.tofile(prepared.path / "features.values")
        else:
            work = planned["part_size"], processes, beam
            stored = _compute(prepared, tables, media, network, sizes, work)
        corpus = corpus_of_tables(
            *(tables, stored, stored.preprocessor, media),
            features or images or train,
        )
        return _save(prepared.path, corpus, planned["network"])

    prepare_files(
        *(folder, KIND, (train, validation, features or None), options),
        *(prepare, files_hash(sizes)),
    )
    return logged(open_prepared_captions(folder), log)


def _compute(prepared, tables, media, network, sizes, work):
    weights, path = prepared.path / NETWORK, prepared.path / "features"
    if not weights.is_file():
        preprocessor = network.preprocessor(network.weights)
        atomic_write(weights, preprocessor.network.save())
    preprocessor = network.loaded(weights)
    names = [*sizes]
    first = next(batches_of_cells(names[:BATCH], media, preprocessor))
    size = typical_size(first)
    lines = lines_of_names(tables)
    shape, *_ = compute_features(
        *(prepared, path),
        functools.partial(_cells, media.path, network, str(weights), size),
        {name: lines[name] for name in names},
        [*sizes.values()],
        *work,
        batch=BATCH,
    )
    shape = (len(names), preprocessor.grid.num_cells, *shape[1:])
    values = mapped(f"{path}.values", "float16", shape)
    factors = np.full(shape[-1], size)
    return StoredFeatures(names, values, grid_of(values, factors), factors)


def _cells(path, network, weights, size, lines):
    """What `compute_features` calls with the pictures of a part."""
    media = open_media(path, read_picture, "picture", lines)
    found = batches_of_cells([*lines], media, _loaded(network, weights))
    cells = np.concatenate([(part / size).astype(np.float16) for part in found])
    lengths = [cells.shape[1]] * len(cells)
    return cells.reshape(-1, cells.shape[-1]), lengths, []


@functools.lru_cache(1)
def _loaded(network, weights):
    return network.loaded(weights)


def _save(path, corpus, network) -> dict[str, Any]:
    for split in ("train", "validation"):
        found = getattr(corpus, split)
        save_examples(
            path / split,
            found.names,
            list(map("\t".join, found.references)),
            found.numbers,
            found.picture if split == "validation" else None,
        )
    stored = corpus.features
    return {
        "counts": [len(corpus.train.names)],
        "facts": corpus.facts,
        "problems": corpus.problems,
        "grid": stored.preprocessor.get_config(),
        "factors": None if stored.factors is None else stored.factors.tolist(),
        "network": network,
        "arrays": {
            "features": {
                "dtype": str(stored.features.dtype),
                "shape": stored.features.shape,
            }
        },
    }
