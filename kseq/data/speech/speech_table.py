"""Tables of recordings and their transcripts."""

import functools
import math
import os
from collections.abc import Sequence
from pathlib import Path

from kseq.data.files.data_error import DataError
from kseq.data.files.named_texts import (
    TRANSCRIPTS,
    left_out_texts,
    lines_of_names,
    read_named_texts,
    refuse_missing,
)
from kseq.data.files.tar_media import Media, open_media
from kseq.data.files.tar_members import TarMember, are_tars
from kseq.data.speech.audio_preprocessor import AudioPreprocessor
from kseq.data.speech.recordings import has_samples, read_recording
from kseq.data.speech.transcripts import Transcripts
from kseq.data.speech.wav_samples import wav_samples

_RATES = range(100, 192_001)  # of which features are computed


class SpeechTable:
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

    @property
    def folder(self):
        """That of the table, where its recordings are by default."""
        return Path(self.path).parent

    def rename_from(self, folder):
        """Names its recordings as they are found from another folder."""
        # A link to a folder has another parent than its path.
        real = functools.cache(os.path.realpath)
        if (start := real(folder)) == real(self.folder):
            return
        recordings_of([self])  # a message has their own names

        def renamed(name):
            if os.path.isabs(name):
                return name
            place, file_name = os.path.split(self.folder / name)
            return os.path.relpath(os.path.join(real(place), file_name), start)

        self.texts = {renamed(name): each for name, each in self.texts.items()}
        self.lines = {renamed(name): each for name, each in self.lines.items()}

    def of(self, stored, folder, longest):
        """Its transcripts of recordings that are not silent or too long."""
        numbers = {name: number for number, name in enumerate(stored.names)}
        if folder is None:
            refuse_missing(self.lines, numbers, "recording")
        lengths = stored.all_lengths()
        names, silent, empty, too_long = [], [], [], []
        for name in self.texts:
            if name not in numbers:
                is_empty = not has_samples(folder(name))
                (empty if is_empty else silent).append(name)
            elif lengths[numbers[name]] > longest:
                too_long.append(name)
            else:
                names.append(name)
        for left_out, reason in (
            (silent, "silent"),
            (empty, "without samples"),
            (too_long, "too long"),
        ):
            if left_out:
                line = self.lines[left_out[0]]
                self.problems.append(
                    f"{self.path}: {len(left_out)} recordings are left out: "
                    f"they are {reason}, such as {left_out[0]!r:.100} in "
                    f"{line.place}."
                )
        if not names:
            nothing = f"{self.path}: no recording can be used."
            raise DataError(" ".join([nothing, *self.problems]))
        return Transcripts(
            names,
            [self.texts[name][0] for name in names],
            stored,
            [numbers[name] for name in names],
            folder,
        )


def recordings_of(
    tables: Sequence[SpeechTable],
    audio: str | os.PathLike = "",
    sample_rate: int | None = None,
    resample: bool = False,
    notes: list[str] | None = None,
    max_seconds: float = math.inf,
) -> Media:
    """The recordings of all tables, each of which is there."""
    first = next(iter(tables[0].lines.values()))
    folder = Path(audio) if audio else tables[0].folder
    return open_recordings(
        None if isinstance(first, TarMember) else folder,
        lines_of_names(tables),
        *(sample_rate, resample, notes, max_seconds),
    )


def open_recordings(
    folder, lines, sample_rate, resample, notes, max_seconds
) -> Media:
    """The recordings of a folder or, if it is None, of tar archives."""
    read = functools.partial(
        read_recording,
        sample_rate=sample_rate,
        resample=resample,
        notes=notes,
        max_seconds=max_seconds,
    )
    return open_media(folder, read, "recording", lines)


def read_tables(
    train: str | os.PathLike,
    validation: str | os.PathLike | None,
    columns: Sequence[str],
    audio: str | os.PathLike = "",
    features: str | os.PathLike = "",
) -> list[SpeechTable]:
    """The tables of training, and of validation if there is one."""
    has_recordings = are_tars(
        *(train, validation), columns=columns, audio=audio, features=features
    )
    paths = [train] if validation is None else [train, validation]
    tables = [SpeechTable(path, columns) for path in paths]
    if not (has_recordings or audio or features):
        for table in tables[1:]:
            table.rename_from(tables[0].folder)
    return tables


def audio_preprocessor(
    tables: Sequence[SpeechTable],
    audio: str | os.PathLike,
    resample: int,
    num_mels: int,
    max_seconds: float,
) -> AudioPreprocessor:
    """That of recordings which all have the sample rate of the first.

    Raises:
        DataError: features cannot be computed at this rate.
    """
    sample_rate, found = resample, "resample takes a number of"
    if not sample_rate:
        media = recordings_of(tables, audio, max_seconds=max_seconds)
        name = next(iter(tables[0].texts))
        [sample_rate] = wav_samples([media(name)])[1].numpy().tolist()
        found = f"{media.title(name)} has {sample_rate}"
    if sample_rate not in _RATES:
        raise DataError(
            f"{found} samples per second; expected {_RATES[0]} to {_RATES[-1]}."
        )
    return AudioPreprocessor(sample_rate, num_mels, max_seconds=max_seconds)


def refuse_features_and(features, audio, resample):
    """Raises DataError for ready features with options of recordings."""
    if audio and features:
        raise DataError("Give --audio or --features, not both.")
    if resample and features:
        raise DataError("resample is for recordings, not for features.")
