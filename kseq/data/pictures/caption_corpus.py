"""Training, validation and test pictures with their captions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kseq.data.files.corpora import (
    facts_and_problems,
    log_problems,
    logged,
    refuse_prepared,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import hold_out, overlap
from kseq.data.files.prepared_folder import PreparedFolder, is_prepared
from kseq.data.files.ragged_array import check_counts, mapped
from kseq.data.files.saved_examples import open_examples
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.pictures.caption_table import (
    CaptionTable,
    picture_names,
    pictures_of,
    read_caption_tables,
)
from kseq.data.pictures.captions import Captions
from kseq.data.pictures.feature_files import read_features
from kseq.data.pictures.feature_preprocessor import FeaturePreprocessor
from kseq.data.pictures.image_preprocessor import ImagePreprocessor
from kseq.data.pictures.picture_features import (
    NETWORK,
    NetworkOptions,
    computed_features,
)
from kseq.data.pictures.scenes import scene_captions
from kseq.terminal import progress

KIND = "captions"


class CaptionCorpus(NamedTuple):
    """The data that a recipe trains on, and is evaluated on.

    Args:
        train: Captions.
        validation: Captions.
        test: Captions.
        preprocessor: makes a model's inputs from what the export takes.
        files: dict, name -> bytes, of what has been computed and is to be kept.
        facts: lines of text: the numbers of pictures and captions.
        problems: lines of text: what is wrong with some of them.
    """

    train: Captions
    validation: Captions
    test: Captions
    preprocessor: FeaturePreprocessor | ImagePreprocessor
    files: dict[str, bytes] | None = None
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def features(self):
        """The `StoredFeatures` of all pictures."""
        return self.train.features

    describe = facts_and_problems


def read_caption_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: Sequence[str] = (),
    *,
    features: str | os.PathLike = "",
    images: str | os.PathLike = "",
    network: NetworkOptions | None = None,
    kept: Path | None = None,
    plain: bool = False,
    log: bool = True,
) -> CaptionCorpus:
    r"""Reads and checks a user's files, or makes the built-in scenes.

    Without a validation file about a tenth of the pictures, and 1,000 at most,
    is held out of training with all their captions. With files, `test` is
    `validation`; `kseq evaluate` scores a trained model on other files.

    Args:
        train: path of a table of names and captions, see
            `read_named_texts`; of tar archives that contain both, see
            `tar_rows`; or a folder of `prepare_captions`; None for the scenes.
        validation: the same, or None.
        columns: of picture and caption in both tables.
        features: path of their features, see `read_features`; without it, they
            are computed from `images`.
        images: path of a folder with the pictures, also to draw attention on.
        network: what computes features.
        kept: path of a folder with the `files` of a run that resumes, or None.
        plain: whether captions become lower case without punctuation.
        log: whether to log the facts, and the problems as warnings.

    Returns:
        CaptionCorpus.

    Raises:
        DataError: a file cannot be used.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("a\tA dog.\na\tDogs.\nb\tA cat.")
    >>> features = np.ones((3, 4, 2), "float16")
    >>> np.savez("a.npz", features=features, names=["a", "b", "c"])
    >>> corpus = read_caption_corpus("a.tsv", features="a.npz")
    >>> print(*corpus.describe(), sep="\n")
    Training pictures: 1, with 2 captions (a.tsv)
    Validation pictures: 1, with 1 captions (held out of training by picture)
    1 of 3 pictures in a.npz have no caption.
    """
    given = {
        "validation": validation,
        "columns": columns,
        "features": features,
        "images": images,
        "plain": plain,
    }
    if train is None:
        refuse_without_train(**given)
        return CaptionCorpus(**scene_captions())
    if is_prepared(train):
        refuse_prepared(**given)
        opened = open_prepared_captions(train, network or NetworkOptions())
        return logged(opened, log)
    tables = read_caption_tables(
        *(train, validation, columns, plain, features, images)
    )
    folder = pictures_of(tables, images)
    files = {}
    if features:
        stored = read_features(features)
        preprocessor = stored.preprocessor
    else:
        stored, preprocessor, files = computed_features(
            picture_names(tables), folder, network or NetworkOptions(), kept
        )
    corpus = corpus_of_tables(
        *(tables, stored, preprocessor, folder),
        *(features or images or train, files),
    )
    return logged(corpus, log)


def corpus_of_tables(
    tables, stored, preprocessor, folder, pictures, files=None
) -> CaptionCorpus:
    """The captions of tables whose features are known.

    Args:
        tables: of training, and of validation if there is one.
        stored: the features of all pictures.
        preprocessor: see `CaptionCorpus`.
        folder: of the pictures, or None.
        pictures: path of features or pictures, for messages.
        files: see `CaptionCorpus`.
    """
    train = tables[0].path
    trained = tables[0].of(stored, folder)
    if len(tables) > 1:
        judged, title = tables[1].of(stored, folder), tables[1].path
    else:
        trained, judged = hold_out(
            *(trained, ("names", "references", "numbers"), train),
            kind="picture",
            two="captions of two pictures",
        )
        title = "held out of training by picture"
    problems = [line for table in tables for line in table.problems]
    problems += overlap(np.isin(judged.numbers, trained.numbers), "picture")
    facts = [
        _size("Training", trained, train),
        _size("Validation", judged, title),
    ]
    used = {*trained.numbers, *judged.numbers}
    if unused := len(stored) - len(used):
        facts.append(
            f"{unused} of {len(stored)} pictures in {pictures} have no caption."
        )
    return CaptionCorpus(
        *(trained, judged, judged),
        preprocessor,
        files,
        tuple(facts),
        tuple(problems),
    )


def check_captions(
    train: str | os.PathLike,
    validation: str | os.PathLike | None = None,
    columns: Sequence[str] = (),
    images: str | os.PathLike = "",
) -> CaptionCorpus:
    """Reads all pictures and captions, and computes no features.

    See `read_caption_corpus`.
    """
    tables = read_caption_tables(train, validation, columns, images=images)
    names, media = picture_names(tables), pictures_of(tables, images)
    with progress("Checking pictures", len(names), "pictures") as advance:
        for name in names:
            media(name)
            advance(1)
    no_features = StoredFeatures(names, np.zeros((len(names), 0, 0)), None)
    return corpus_of_tables(tables, no_features, None, media, images or train)


def open_prepared_captions(
    folder: str | os.PathLike, network: NetworkOptions | None = None
) -> CaptionCorpus:
    """Opens what `prepare_captions` has written; reads no features.

    Those that were computed must be of `network`, if there is one.

    Raises:
        DataError: the folder is not complete, broken, or of another kind; or
            its features are others.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        path, dtype, shape = prepared.array(record, "features")
        values = mapped(path.with_suffix(".values"), dtype, shape)
        grid = FeaturePreprocessor(**record["grid"])
        sizes = grid.num_cells, grid.num_features
        check_counts(folder, sizes, values.shape[1:])
        stored = StoredFeatures([], values, grid, record["factors"])
        options = record["network"] and NetworkOptions(**record["network"])
        facts, problems = tuple(record["facts"]), tuple(record["problems"])
    preprocessor, files = grid, {}
    if options:
        if network and network.name != options.name:
            raise DataError(
                f"{folder} is prepared with --network {options.name}; "
                f"expected {network.name}."
            )
        path = prepared.path / NETWORK
        preprocessor = options.loaded(path).with_scale(grid.scale)
        files = {NETWORK: path.read_bytes()}
    splits = []
    for split in ("train", "validation"):
        names, references, numbers, media = open_examples(
            prepared.path / split,
            len(values),
            lambda row: row.decode().split("\t"),
        )
        splits.append(Captions(names, references, stored, numbers, media))
    train, validation = splits
    return CaptionCorpus(
        *(train, validation, validation), preprocessor, files, facts, problems
    )


def read_captions(path, stored, columns=(), plain=False) -> Captions:
    """The captions of a table, of pictures whose features are stored.

    Args:
        path: see `read_caption_corpus`.
        stored: StoredFeatures.
        columns: see `read_caption_corpus`.
        plain: see `read_caption_corpus`.

    Raises:
        DataError: the table is broken, or a picture has no features.
    """
    table = CaptionTable(path, columns, plain)
    log_problems(table.problems)
    return table.of(stored, None)


def read_image_captions(path, folder, columns=(), plain=False) -> Captions:
    """The captions of a table, of pictures in a folder, without features.

    Args:
        path: see `read_caption_corpus`.
        folder: path of the folder; "" for tar archives.
        columns: see `read_caption_corpus`.
        plain: see `read_caption_corpus`.

    Raises:
        DataError: the table is broken, or there is no such picture.
    """
    [table] = read_caption_tables(path, None, columns, plain, images=folder)
    log_problems(table.problems)
    pictures = pictures_of([table], folder)
    captions = table.captions
    return Captions(list(captions), list(captions.values()), picture=pictures)


def _size(title, captions, path):
    count = sum(map(len, captions.references))
    return (
        f"{title} pictures: {len(captions.numbers)}, with {count} captions "
        f"({path})"
    )
