"""Training, validation and test recordings with their transcripts."""

import functools
import math
import os
from collections.abc import Sequence
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
from kseq.data.files.named_texts import lines_of_names
from kseq.data.files.prepared_folder import PreparedFolder, is_prepared
from kseq.data.files.ragged_array import RaggedArray, check_counts
from kseq.data.files.saved_examples import open_examples
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.files.tar_media import Media
from kseq.data.speech.audio_preprocessor import AudioPreprocessor
from kseq.data.speech.frame_files import read_frames
from kseq.data.speech.frame_preprocessor import FramePreprocessor
from kseq.data.speech.morse import morse_transcripts
from kseq.data.speech.recorded_features import recorded_features
from kseq.data.speech.speech_table import (
    SpeechTable,
    audio_preprocessor,
    read_tables,
    recordings_of,
    refuse_features_and,
)
from kseq.data.speech.transcripts import Transcripts

KIND = "recordings"
_MOST_NOTES = 5  # about single recordings


class SpeechCorpus(NamedTuple):
    """The data that a recipe trains on, and is evaluated on.

    Args:
        train: Transcripts.
        validation: Transcripts.
        test: Transcripts.
        preprocessor: makes a model's inputs from what the export takes.
        facts: lines of text: the numbers and lengths of recordings.
        problems: lines of text: what is wrong with some of them.
    """

    train: Transcripts
    validation: Transcripts
    test: Transcripts
    preprocessor: AudioPreprocessor | FramePreprocessor
    facts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def features(self):
        """The `StoredFeatures` of all recordings."""
        return self.train.features

    describe = facts_and_problems


def read_speech_corpus(
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    columns: Sequence[str] = (),
    *,
    audio: str | os.PathLike = "",
    features: str | os.PathLike = "",
    num_mels: int = 40,
    max_seconds: float = 60.0,
    resample: int = 0,
    words: Sequence[str] = (),
    log: bool = True,
) -> SpeechCorpus:
    r"""Reads and checks a user's files, or makes the built-in Morse code.

    Without a validation file about a tenth of the recordings, and 1,000 at
    most, is held out of training. With files, `test` is `validation`; `kseq
    evaluate` scores a trained model on other files.

    Args:
        train: path of a table of recordings and transcripts, see
            `read_named_texts` and `read_recording`; of tar archives that
            contain both, see `tar_rows`; or a folder of `prepare_speech`; None
            for Morse code.
        validation: the same, or None.
        columns: of recording and transcript in both tables.
        audio: path of the folder of the recordings; by default that of each
            table.
        features: path of ready features, see `read_frames`; the tables then
            have their names.
        num_mels: int, features of a frame, where they are computed.
        max_seconds: float; longer recordings are left out.
        resample: int, samples per second to which recordings are resampled;
            0 if all have the same and keep it.
        words: of the Morse code, see `morse`; by default random letters.
        log: whether to log the facts, and the problems as warnings.

    Returns:
        SpeechCorpus.

    Raises:
        DataError: a file cannot be used.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("a\tyes\nb\tno no\nc\tgo")
    >>> frames = np.random.default_rng(0).normal(size=(90, 13))
    >>> names = ["a", "b", "c"]
    >>> np.savez("a.npz", features=frames, lengths=[20, 30, 40], names=names)
    >>> corpus = read_speech_corpus("a.tsv", features="a.npz")
    >>> print(*corpus.describe(), sep="\n")
    Training recordings: 2, 0.5 seconds (a.tsv)
    Validation recordings: 1, 0.4 seconds (held out of training)
    """
    given = {
        "validation": validation,
        "columns": columns,
        "audio": audio,
        "features": features,
        "resample": resample,
    }
    if train is None:
        refuse_without_train(**given)
        return SpeechCorpus(**morse_transcripts(num_mels, max_seconds, words))
    if is_prepared(train):
        refuse_prepared(**given)
        opened = open_prepared_speech(train, num_mels, max_seconds)
        return logged(opened, log)
    refuse_features_and(features, audio, resample)
    tables = read_tables(train, validation, columns, audio, features)
    if features:
        stored = read_frames(features, max_seconds=max_seconds)
        preprocessor = stored.preprocessor
        folder, notes = None, []
    else:
        names = list(lines_of_names(tables))
        preprocessor = audio_preprocessor(
            tables, audio, resample, num_mels, max_seconds
        )
        notes = []
        recordings = functools.partial(
            *(recordings_of, tables, audio),
            *(preprocessor.sample_rate, bool(resample)),
            max_seconds=max_seconds,
        )
        folder = recordings()
        checked = recordings(notes=notes)
        stored = recorded_features(names, checked, preprocessor)
    corpus = corpus_of_tables(
        tables, stored, preprocessor, folder, max_seconds, notes
    )
    return logged(corpus, log)


def corpus_of_tables(
    tables: Sequence[SpeechTable],
    stored: StoredFeatures,
    preprocessor: AudioPreprocessor | FramePreprocessor,
    folder: Media | None,
    max_seconds: float,
    notes: list[str],
) -> SpeechCorpus:
    """The transcripts of tables whose features are known.

    Args:
        tables: of training, and of validation if there is one.
        stored: the features of all recordings that have any.
        preprocessor: see `SpeechCorpus`.
        folder: of the recordings; None if there are only features.
        max_seconds: see `read_speech_corpus`.
        notes: lines of text about single recordings.
    """
    longest = max_seconds * stored.preprocessor.frames_per_second
    train = tables[0].path
    trained = tables[0].of(stored, folder, longest)
    if len(tables) > 1:
        judged = tables[1].of(stored, folder, longest)
        title = tables[1].path
    else:
        trained, judged = hold_out(
            *(trained, ("names", "texts", "numbers"), train),
            kind="recording",
            two="two recordings",
        )
        title = "held out of training"
    problems = [line for table in tables for line in table.problems]
    problems += notes[:_MOST_NOTES]
    if more := len(notes[_MOST_NOTES:]):
        problems.append(f"{more} more recordings are unfinished or truncated.")
    problems += overlap(np.isin(judged.numbers, trained.numbers), "recording")
    return SpeechCorpus(
        *(trained, judged, judged),
        preprocessor,
        (
            _size("Training", trained, train),
            _size("Validation", judged, title),
        ),
        tuple(problems),
    )


def open_prepared_speech(
    folder: str | os.PathLike, num_mels: int = 40, max_seconds: float = 60.0
) -> SpeechCorpus:
    """Opens what `prepare_speech` has written; reads no features.

    Those that were computed must have `num_mels`. Recordings longer than
    `max_seconds` are left out.

    Raises:
        DataError: the folder is not complete, broken, or of another kind; or
            its features are others.
    """
    prepared = PreparedFolder(folder)
    with prepared.opened(KIND) as record:
        frames, preprocessor = _preprocessors(
            folder, record["preprocessor"], num_mels, max_seconds
        )
        rows = RaggedArray.open(*prepared.array(record, "features"))
        check_counts(folder, (frames.num_features,), rows.values.shape[1:])
        facts, problems = tuple(record["facts"]), tuple(record["problems"])
    stored = StoredFeatures([], rows, frames)
    splits = []
    for split in ("train", "validation"):
        names, texts, numbers, audio = open_examples(
            prepared.path / split, len(rows)
        )
        found = Transcripts(names, texts, stored, numbers, audio)
        is_short = stored.all_lengths()[found.numbers] <= frames.max_frames
        if not is_short.all():
            found = found.some(np.flatnonzero(is_short))
            problems += (
                f"{folder}: {np.count_nonzero(~is_short)} recordings of "
                f"{split} are left out: they are too long.",
            )
        if not len(found.numbers):
            raise DataError(f"{folder}: no recording of {split} can be used.")
        splits.append(found)
    train, validation = splits
    return SpeechCorpus(
        *(train, validation, validation), preprocessor, facts, problems
    )


def _preprocessors(folder, config, num_mels, max_seconds):
    """That of frames, and that of what the export takes."""
    if "sample_rate" not in config:
        most = min(config["max_frames"], max(int(100 * max_seconds), 1))
        frames = FramePreprocessor(**config | {"max_frames": most})
        return frames, frames
    if config["num_mels"] != num_mels:
        raise DataError(
            f"{folder} is prepared with --num-mels {config['num_mels']}; "
            f"expected {num_mels}."
        )
    most = min(config["max_seconds"], max_seconds)
    preprocessor = AudioPreprocessor(**config | {"max_seconds": most})
    return preprocessor.frames, preprocessor


def read_transcripts(
    path: str | os.PathLike,
    columns: Sequence[str] = (),
    *,
    stored: StoredFeatures | None = None,
    audio: str | os.PathLike = "",
    sample_rate: int | None = None,
    resample: bool = False,
) -> Transcripts:
    """The transcripts of a table, with their recordings or stored features.

    Args:
        path: see `read_speech_corpus`.
        columns: see `read_speech_corpus`.
        stored: StoredFeatures, or None for recordings.
        audio: see `read_speech_corpus`.
        sample_rate: int, that recordings must have.
        resample: whether others are resampled to it.

    Raises:
        DataError: the table is broken, or a recording is not there.
    """
    [table] = read_tables(path, None, columns, audio, stored)
    log_problems(table.problems)
    if stored is not None:
        return table.of(stored, None, math.inf)
    folder = recordings_of([table], audio, sample_rate, resample)
    texts = [texts for [texts] in table.texts.values()]
    return Transcripts(list(table.texts), texts, audio=folder)


def _size(title, transcripts, path):
    stored = transcripts.features
    frames = int(stored.all_lengths()[transcripts.numbers].sum())
    seconds = frames / stored.preprocessor.frames_per_second
    shown = f"{seconds:.1f} seconds"
    if seconds > 60:
        shown = f"{np.round(seconds / 60, 1):,} minutes"
    return f"{title} recordings: {len(transcripts.names)}, {shown} ({path})"
