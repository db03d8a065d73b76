"""Training, validation and test recordings with their transcripts."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kseq.data.files.corpora import (
    facts_and_problems,
    logged,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import hold_out, overlap
from kseq.data.files.media_folder import MediaFolder
from kseq.data.files.named_texts import (
    TRANSCRIPTS,
    left_out_texts,
    read_named_texts,
)
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.speech.audio_preprocessor import AudioPreprocessor
from kseq.data.speech.frame_files import read_frames
from kseq.data.speech.frame_preprocessor import FramePreprocessor
from kseq.data.speech.morse import morse_transcripts
from kseq.data.speech.recorded_features import recorded_features
from kseq.data.speech.recordings import has_samples, read_recording
from kseq.data.speech.transcripts import Transcripts
from kseq.data.speech.wav_samples import wav_samples

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
    most, is held out of training. With files, `test` is `validation`;
    `kseq evaluate` scores a trained model on any other.

    Args:
        train: path of a table of recordings and transcripts, see
            `read_named_texts` and `read_recording`; None for Morse code.
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
        log: whether the facts are logged, what is wrong as a warning.

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
    if train is None:
        refuse_without_train(
            validation=validation,
            columns=columns,
            audio=audio,
            features=features,
            resample=resample,
        )
        return SpeechCorpus(**morse_transcripts(num_mels, max_seconds, words))
    if audio and features:
        raise DataError("Give --audio or --features, not both.")
    if resample and features:
        raise DataError("resample is for recordings, not for features.")
    paths = [train, validation] if validation else [train]
    tables = [_Table(path, columns) for path in paths]
    if features:
        stored = read_frames(features, max_seconds=max_seconds)
        preprocessor = stored.preprocessor
        folder, notes = None, []
    else:
        folder = _folder(tables, audio)
        names = list(dict.fromkeys(name for t in tables for name in t.texts))
        sample_rate = resample
        if not sample_rate:
            [sample_rate] = wav_samples([folder(names[0])])[1].numpy().tolist()
        preprocessor = AudioPreprocessor(
            sample_rate, num_mels, max_seconds=max_seconds
        )
        notes = []
        checked = _folder(tables, audio, sample_rate, bool(resample), notes)
        stored = recorded_features(names, checked, preprocessor)
        folder = _folder(tables, audio, sample_rate, bool(resample))
    longest = max_seconds * stored.preprocessor.frames_per_second
    trained = tables[0].of(stored, folder, longest)
    if validation:
        judged = tables[1].of(stored, folder, longest)
        title = validation
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
        problems.append(f"{more} more recordings are unfinished.")
    problems += overlap(np.isin(judged.numbers, trained.numbers), "recording")
    corpus = SpeechCorpus(
        *(trained, judged, judged),
        preprocessor,
        (
            _size("Training", trained, train),
            _size("Validation", judged, title),
        ),
        tuple(problems),
    )
    return logged(corpus, log)


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
    table = _Table(path, columns)
    if stored is not None:
        return table.of(stored, None, None)
    folder = _folder([table], audio, sample_rate, resample)
    texts = [texts for [texts] in table.texts.values()]
    return Transcripts(list(table.texts), texts, audio=folder)


class _Table:
    """A table of transcripts."""

    def __init__(self, path, columns):
        self.path = path
        found = read_named_texts(path, columns, known=TRANSCRIPTS)
        self.texts, self.lines, left_out = found
        for name, texts in self.texts.items():
            if len(texts) > 1:
                raise DataError(
                    f"{path}: {name!r:.100} has {len(texts)} transcripts; "
                    "expected one."
                )
        self.problems = left_out_texts(path, left_out, TRANSCRIPTS)

    def of(self, stored, folder, longest):
        """Its transcripts of recordings that are not silent or too long."""
        numbers = {name: number for number, name in enumerate(stored.names)}
        silent = [name for name in self.texts if name not in numbers]
        if folder is None and silent:
            raise DataError(
                f"{self.lines[silent[0]]}: expected the name of a recording "
                f"that has features, such as {stored.names[0]!r:.100}; found "
                f"{silent[0]!r:.100}."
            )
        names = [name for name in self.texts if name in numbers]
        too_long = [
            name
            for name in names
            if longest is not None and len(stored[numbers[name]]) > longest
        ]
        empty = {name for name in silent if not has_samples(folder(name))}
        for left_out, reason in (
            ([name for name in silent if name not in empty], "silent"),
            ([name for name in silent if name in empty], "without samples"),
            (too_long, "too long"),
        ):
            if left_out:
                line = self.lines[left_out[0]]
                self.problems.append(
                    f"{self.path}: {len(left_out)} recordings are left out: "
                    f"they are {reason}, such as {left_out[0]!r:.100} in line "
                    f"{line.number}."
                )
        names = [name for name in names if name not in {*too_long}]
        if not names:
            raise DataError(f"{self.path}: no recording can be used.")
        return Transcripts(
            names,
            [self.texts[name][0] for name in names],
            stored,
            [numbers[name] for name in names],
            folder,
        )


def _folder(tables, audio, sample_rate=None, resample=False, notes=None):
    """The folder of the recordings of all tables, in which each is."""
    path = Path(audio) if audio else Path(tables[0].path).parent

    read = functools.partial(
        read_recording,
        sample_rate=sample_rate,
        resample=resample,
        notes=notes,
    )
    folder = MediaFolder(path, read, "recording")
    for table in tables:
        folder.check(table.lines)
    return folder


def _size(title, transcripts, path):
    stored = transcripts.features
    frames = sum(len(stored[number]) for number in transcripts.numbers)
    seconds = frames / stored.preprocessor.frames_per_second
    shown = f"{seconds:.1f} seconds"
    if seconds > 60:
        shown = f"{np.round(seconds / 60, 1):,} minutes"
    return f"{title} recordings: {len(transcripts.names)}, {shown} ({path})"
