"""Options of commands that read the files of a corpus."""

from typing import get_args

from kseq.command_line.argument_types import existing_file, reader
from kseq.command_line.option_types import (
    MelBands,
    Network,
    Pieces,
    PositiveFloat,
    PositiveInt,
    RunPath,
    SampleRate,
    Seconds,
    VocabSize,
)


def add_check(command):
    """Adds the options of `kseq check`."""
    command.add_argument("files", type=reader(str), nargs="+", metavar="FILE")
    _add_validation(command, default=(), of="FILES")
    _add_columns(
        command,
        "columns of source, target and optional alignment, of label and texts, "
        "of words and tags, or of text",
    )
    _add_kinds(command)
    add_features(
        command, "precomputed features; the files are captions or transcripts"
    )
    _add_audio(command, "folder of recordings; the files are transcripts")
    _add_images(command, "folder of pictures; the files are captions")
    _add_filters(command, "count")


def add_prepare(command):
    """Adds the options of `kseq prepare`."""
    command.add_argument(
        "folder",
        type=reader(RunPath),
        metavar="FOLDER",
        help="folder that is written; after an interruption, the same command "
        "resumes",
    )
    command.add_argument(
        "--train",
        type=reader(str),
        nargs="+",
        metavar="FILE",
        help="tables, or pairs of files; default: the built-in dates",
    )
    _add_kinds(command)
    _add_audio(
        command,
        "folder of recordings, whose features are computed; --train has "
        "transcripts or labels",
    )
    command.add_argument(
        "--num-mels",
        type=reader(MelBands),
        metavar="N",
        help="mel features per frame of a recording; default: 40",
    )
    command.add_argument(
        "--max-seconds",
        type=reader(Seconds),
        metavar="S",
        help="leave out longer recordings; default: 30",
    )
    _add_images(
        command,
        "folder of pictures, whose features are computed; --train has captions",
    )
    command.add_argument(
        "--network",
        type=reader(Network),
        metavar="NAME",
        help="network of keras.applications for --images; default: "
        "EfficientNetB0",
    )
    command.add_argument(
        "--network-weights",
        type=reader(str),
        metavar="FILE",
        help="weights of --network; default: imagenet, downloaded once",
    )
    _add_flags(
        command, ("--plain", "captions in lower case, without punctuation")
    )
    add_features(
        command, "precomputed features; --train has captions or transcripts"
    )
    _add_validation(command, default=None, of="the files of --train")
    _add_columns(
        command,
        "columns of source, target and optional alignment, of label and texts, "
        "of words and tags, of recording and transcript, or of text",
    )
    command.add_argument(
        "--vocab-size",
        type=reader(VocabSize),
        metavar="N",
        help="maximum pieces of each tokenizer; default: 8000, 16000 with "
        "--documents, 1500 without --train",
    )
    command.add_argument(
        "--pieces",
        choices=get_args(Pieces),
        nargs="+",
        help="one type for source and target together, or one for each; "
        "default: bpe, and char with --text",
    )
    command.add_argument(
        "--from",
        dest="from_",
        type=reader(str),
        metavar="RUN",
        help="use the tokenizers of a run, to fine-tune it",
    )
    _add_filters(command, "leave out of training")
    command.add_argument(
        "--processes",
        type=reader(PositiveInt),
        metavar="N",
        help="number of processes; default: all cores for large files, "
        "otherwise 1",
    )
    command.add_argument(
        "--beam",
        type=reader(str),
        nargs="?",
        const=(),
        metavar="OPTIONS",
        help="run as an Apache Beam pipeline, with options such as "
        "--beam='--runner=FlinkRunner --parallelism=16'",
    )
    _add_flags(command, ("--overwrite", "replace prepared data in FOLDER"))


def add_features(command, help="features of the items named in the input"):
    """Adds the file with the features of pictures or recordings."""
    command.add_argument(
        "--features", type=existing_file, metavar="FILE.npz", help=help
    )


def _add_flags(command, *flags):
    for flag, help in flags:
        command.add_argument(flag, action="store_true", help=help)


def _add_kinds(command):
    """Adds what files hold instead of pairs of sentences."""
    _add_flags(
        command,
        ("--documents", "labelled documents, not pairs of sentences"),
        ("--tags", "sentences with a tag for each word, not pairs"),
        ("--dialogues", "dialogues, not pairs of sentences"),
        ("--text", "running text for a language model, not pairs"),
    )


def _add_validation(command, default, of):
    command.add_argument(
        "--validation",
        type=reader(str),
        nargs="+",
        default=default,
        metavar="FILE",
        help=f"validation files; default: held out of {of}",
    )


def _add_columns(command, help):
    command.add_argument(
        "--columns",
        type=reader(str),
        nargs="+",
        default=(),
        metavar="COLUMN",
        help=help,
    )


def _add_audio(command, help):
    command.add_argument(
        "--audio", type=reader(str), metavar="FOLDER", help=help
    )
    command.add_argument(
        "--resample",
        type=reader(SampleRate),
        metavar="N",
        help="resample recordings to N samples per second",
    )


def _add_images(command, help):
    command.add_argument(
        "--images", type=reader(str), metavar="FOLDER", help=help
    )


def _add_filters(command, verb):
    """Adds the filters of `kseq.data.LineFilters`.

    Args:
        command: an argparse parser.
        verb: what happens to pairs that are probably no translations.
    """
    _add_flags(
        command,
        ("--filter", f"{verb} pairs that are probably not translations"),
    )
    command.add_argument(
        "--scripts",
        type=reader(str),
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="with --filter: scripts of both sides, such as Latin Cyrillic",
    )
    command.add_argument(
        "--max-ratio",
        type=reader(PositiveFloat),
        metavar="N",
        help="with --filter: maximum length ratio of the two sides; default: 9",
    )
    command.add_argument(
        "--max-characters",
        type=reader(PositiveInt),
        metavar="N",
        help="with --filter: maximum length of a side; default: 1000",
    )
