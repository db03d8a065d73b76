"""Prepares recordings for training: computes their features once."""

import functools
import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from kseq.data.files.corpora import logged
from kseq.data.files.data_error import DataError
from kseq.data.files.feature_parts import (
    PART_SIZE,
    compute_features,
    files_hash,
)
from kseq.data.files.named_texts import lines_of_names
from kseq.data.files.prepare_files import prepare_files
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.ragged_array import RaggedArray, mapped
from kseq.data.files.saved_examples import save_examples
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.speech.frame_files import read_frames
from kseq.data.speech.recorded_features import SILENT, frames_of
from kseq.data.speech.speech_corpus import (
    KIND,
    SpeechCorpus,
    corpus_of_tables,
    open_prepared_speech,
    read_speech_corpus,
)
from kseq.data.speech.speech_table import (
    audio_preprocessor,
    open_recordings,
    read_tables,
    recordings_of,
    refuse_features_and,
)


def prepare_speech(
    folder: str | os.PathLike,
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: Sequence[str] = (),
    *,
    audio: str | os.PathLike = "",
    features: str | os.PathLike = "",
    num_mels: int = 40,
    max_seconds: float = 30.0,
    resample: int = 0,
    words: Sequence[str] = (),
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> SpeechCorpus:
    r"""Computes the features of recordings once, and writes a folder.

    The recordings, the held-out part and the problems are those of
    `read_speech_corpus`. Training maps the features into memory and reads no
    recording: the folder also has the transcripts, and for the test of the
    export the recordings of validation as WAV files. Tokenizers are made in
    training, so one folder serves recipes with different tokenizers or labels.

    The same files give the same bytes, whatever the number of processes, if
    operations run on one processor as in the processes. If the process ends
    before it has finished, the same call resumes; if the folder is complete,
    it is opened.

    Args:
        folder: where to write.
        train: see `read_speech_corpus`; a folder that is prepared already is
            opened, and the built-in Morse code is not written.
        validation: see `read_speech_corpus`.
        columns: see `read_speech_corpus`.
        audio: see `read_speech_corpus`.
        features: see `read_speech_corpus`. They are only made readable without
            loading them.
        num_mels: see `read_speech_corpus`.
        max_seconds: longer recordings are left out; by default those that
            `transcribe_speech` leaves out.
        resample: see `read_speech_corpus`.
        words: see `read_speech_corpus`.
        processes: see `prepare_pairs`.
        beam: see `prepare_pairs`.
        log: whether to log the facts, and the problems as warnings.
        part_size: bytes of recordings that a process reads together.

    Raises:
        DataError: a file cannot be used, or the folder was prepared from
            different files or with different options.
        DiskError: the disk is full.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("a\tyes\nb\tno no\nc\tgo")
    >>> frames = np.random.default_rng(0).normal(size=(90, 13))
    >>> names = ["a", "b", "c"]
    >>> np.savez("a.npz", features=frames, lengths=[20, 30, 40], names=names)
    >>> corpus = prepare_speech("prepared", "a.tsv", features="a.npz")
    >>> [*corpus.train.texts], corpus.features[2].shape
    (['yes', 'no no'], (40, 13))
    """
    if train is None or is_prepared(train):
        return read_speech_corpus(
            *(train, validation, columns),
            audio=audio,
            features=features,
            num_mels=num_mels,
            max_seconds=max_seconds,
            resample=resample,
            words=words,
            log=log,
        )
    refuse_features_and(features, audio, resample)
    options = {
        "columns": [*columns],
        "num_mels": num_mels,
        "max_seconds": max_seconds,
        "resample": resample,
        "part_size": part_size,
    }
    tables = read_tables(train, validation, columns, audio, features)
    sizes = {} if features else _sizes(tables, audio)

    def prepare(prepared, planned):
        if features:
            stored = read_frames(features, max_seconds=max_seconds)
            stored.features.save(prepared.path / "features")
            both, notes = (stored.preprocessor, None), []
        else:
            preprocessor = audio_preprocessor(
                tables, audio, resample, num_mels, max_seconds
            )
            work = planned["part_size"], processes, beam
            stored, media, notes = _compute(
                *(prepared, tables, audio, preprocessor),
                *(bool(resample), sizes, work),
            )
            both = preprocessor, media
        corpus = corpus_of_tables(tables, stored, *both, max_seconds, notes)
        return _save(prepared.path, corpus)

    prepare_files(
        *(folder, KIND, (train, validation, features or None), options),
        *(prepare, files_hash(sizes)),
    )
    return logged(open_prepared_speech(folder, num_mels, max_seconds), log)


def _sizes(tables, audio) -> dict[str, int]:
    media = recordings_of(tables, audio)
    return {name: media.size(name) for name in lines_of_names(tables)}


def _compute(prepared, tables, audio, preprocessor, resample, sizes, work):
    """The features of recordings, their files, and notes about some."""
    media = recordings_of(
        *(tables, audio, preprocessor.sample_rate, resample),
        max_seconds=preprocessor.max_seconds,
    )
    compute = functools.partial(_frames, media.path, preprocessor, resample)
    path, lines = prepared.path / "features", lines_of_names(tables)
    shape, lengths, notes = compute_features(
        prepared, path, compute, lines, [*sizes.values()], *work
    )
    names = [*itertools.compress(lines, lengths)]
    if not names:
        raise DataError(SILENT)
    offsets = np.cumsum([0, *lengths[lengths > 0]], dtype=np.int64)
    rows = RaggedArray(mapped(f"{path}.values", "float16", shape), offsets)
    offsets.tofile(f"{path}.offsets")
    return StoredFeatures(names, rows, preprocessor.frames), media, notes


def _frames(path, preprocessor, resample, lines):
    """What `compute_features` calls with the recordings of a part."""
    notes = []
    both = preprocessor.sample_rate, resample
    media = open_recordings(path, lines, *both, notes, preprocessor.max_seconds)
    return *frames_of([*lines], media, preprocessor), notes


def _save(path, corpus) -> dict[str, Any]:
    for split in ("train", "validation"):
        found = getattr(corpus, split)
        media = found.audio if split == "validation" else None
        save_examples(
            path / split, found.names, found.texts, found.numbers, media
        )
    values = corpus.features.features.values
    return {
        "counts": [len(corpus.train.names)],
        "facts": corpus.facts,
        "problems": corpus.problems,
        "preprocessor": corpus.preprocessor.get_config(),
        "arrays": {
            "features": {"dtype": str(values.dtype), "shape": values.shape}
        },
    }
