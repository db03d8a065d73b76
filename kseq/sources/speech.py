"""Recordings: their files, or frames of ready features."""

import os
import zipfile

from kseq import data
from kseq.data.files.named_texts import TRANSCRIPTS, named_rows
from kseq.sources.numbered_lines import numbered_lines
from kseq.sources.prepare_file import prepare_features
from kseq.sources.ready_features import named_features, stored_features
from kseq.sources.source_type import SourceType


def _are_resampled(options):
    """Whether, or to which rate; not every command has the option."""
    return getattr(options, "resample", None) or False


def _read_recordings(model, options):
    from kseq.data.speech.recordings import read_recording

    notes = []
    rate = model.preprocessor.sample_rate
    resample = _are_resampled(options)

    def read(line):
        return read_recording(
            os.fsdecode(line),
            sample_rate=rate,
            resample=resample,
            sounds=True,
            notes=notes,
        )

    return numbered_lines(read, notes=notes)


def _frames(model, options):
    return stored_features(data.read_frames, "recordings", model, options)


def _read_frames(model, options):
    return named_features(_frames(model, options), options.features)


def _are_frames(options):
    """Whether ready features have lengths, as those of recordings have."""
    try:
        with zipfile.ZipFile(options.features or "") as file:
            return "lengths.npy" in file.namelist()
    except Exception:  # broken, which is said where it is read
        return False


def _read_corpus(options, train, validation):
    return data.read_speech_corpus(
        train,
        validation,
        options.columns or (),
        features=options.features or "",
        audio=options.audio or "",
        resample=_are_resampled(options) or 0,
        log=False,
    )


def _prepare(options, kept, beam):
    return prepare_features(
        *(data.prepare_speech, options, kept, beam),
        audio=options.audio,
        resample=options.resample,
        num_mels=options.num_mels,
        max_seconds=options.max_seconds,
    )


def _transcripts_of_recordings(model, options):
    return data.read_transcripts(
        options.source,
        options.columns or (),
        audio=options.audio or "",
        sample_rate=model.preprocessor.sample_rate,
        resample=_are_resampled(options),
    )


def _transcripts_of_frames(model, options):
    stored = _frames(model, options)
    return data.read_transcripts(
        options.source, options.columns or (), stored=stored
    )


def _draw(sound, seconds=None):
    from kseq.sources.spectrogram import spectrogram

    return spectrogram(sound, seconds)


_FILES = {
    "content": "transcripts",
    "prepared": "recordings",
    "files": "table of recordings and transcripts",
    "task": "This model transcribes speech",
    "first_rows": lambda path, columns, _: named_rows(
        path, columns, TRANSCRIPTS
    ),
    "read_corpus": _read_corpus,
    "prepare": _prepare,
    "trains": "transcribe_speech",
    "evaluation": "transcript_evaluation",
    "draw": _draw,
}
AUDIO = SourceType(
    name="audio",
    preprocessor="AudioPreprocessor",
    item="recording",
    lines="paths of recordings",
    command_line="< PATHS",
    python='[open("a.wav", "rb").read()]',
    json='[{"b64": "..."}]',
    read_lines=_read_recordings,
    options=frozenset({"columns", "metrics", "audio", "resample"}),
    option="audio",
    read_examples=_transcripts_of_recordings,
    is_file=True,
    bytes_per_step=320,  # 10 ms of sound, in 16 bits at 16 kHz
    page_input="sound_input",
    page_view="speech",
    **_FILES,
)
FRAMES = SourceType(
    name="frames",
    preprocessor="FramePreprocessor",
    item="recording",
    lines="features",
    command_line="--features FILE.npz < NAMES",
    python="[frames]",
    json="[[[0.5, ...]]]",
    read_lines=_read_frames,
    options=frozenset({"columns", "metrics", "features"}),
    option="features",
    is_meant=_are_frames,
    read_examples=_transcripts_of_frames,
    **_FILES,
)
