"""Options of `kseq prepare`."""

from typing import get_args

from kseq.command_line.argument_types import reader
from kseq.command_line.features_option import add_features
from kseq.command_line.filter_options import add_filters
from kseq.command_line.option_types import (
    Pieces,
    PositiveFloat,
    PositiveInt,
    RunPath,
    SmallInt,
    VocabSize,
)


def add_prepare(command):
    """Adds the folder, the files, and how they are prepared."""
    command.add_argument(
        "folder",
        type=reader(RunPath),
        metavar="FOLDER",
        help="written; the same command resumes what was interrupted",
    )
    command.add_argument(
        "--train",
        type=reader(str),
        nargs="+",
        metavar="FILE",
        help="tables, or pairs of files; default: the built-in dates",
    )
    command.add_argument(
        "--text",
        action="store_true",
        help="running text of a language model, not pairs of sentences",
    )
    command.add_argument(
        "--audio",
        type=reader(str),
        metavar="FOLDER",
        help="transcripts or labels of the recordings of a folder, whose "
        "features are computed",
    )
    command.add_argument(
        "--resample",
        type=reader(PositiveInt),
        metavar="N",
        help="resample recordings to N samples per second",
    )
    command.add_argument(
        "--num-mels",
        type=reader(SmallInt),
        metavar="N",
        help="features of a frame of recordings; default: 40",
    )
    command.add_argument(
        "--max-seconds",
        type=reader(PositiveFloat),
        metavar="S",
        help="leave out longer recordings; default: 30",
    )
    command.add_argument(
        "--images",
        type=reader(str),
        metavar="FOLDER",
        help="captions of the pictures of a folder, whose features are "
        "computed",
    )
    command.add_argument(
        "--network",
        type=reader(str),
        metavar="NAME",
        help="of keras.applications, for --images; default: EfficientNetB0",
    )
    command.add_argument(
        "--network-weights",
        type=reader(str),
        metavar="FILE",
        help="its weights; default: imagenet, downloaded once",
    )
    command.add_argument(
        "--plain",
        action="store_true",
        help="captions in lower case, without punctuation",
    )
    add_features(
        command, "captions or transcripts of what is in this .npz file"
    )
    command.add_argument(
        "--documents",
        action="store_true",
        help="documents and their labels",
    )
    command.add_argument(
        "--tags",
        action="store_true",
        help="sentences with a tag for each word",
    )
    command.add_argument(
        "--dialogues",
        action="store_true",
        help="dialogues, of which each turn after the first is an answer",
    )
    command.add_argument(
        "--validation",
        type=reader(str),
        nargs="+",
        metavar="FILE",
        help="default: held out of the files of --train",
    )
    command.add_argument(
        "--columns",
        type=reader(str),
        nargs="+",
        default=(),
        metavar="COLUMN",
        help="columns of source, target, and perhaps alignment, of label and "
        "text, of words and tags, of recording and transcript, or of text",
    )
    command.add_argument(
        "--vocab-size",
        type=reader(VocabSize),
        metavar="N",
        help="pieces of each tokenizer; default: 8000, 16000 with --documents, "
        "1500 without --train",
    )
    command.add_argument(
        "--pieces",
        choices=get_args(Pieces),
        nargs="+",
        help="of source and target together, or of each; default: bpe, and "
        "char with --text",
    )
    command.add_argument(
        "--from",
        dest="from_",
        type=reader(str),
        metavar="RUN",
        help="keep the tokenizers of a run, to fine-tune it",
    )
    add_filters(command, "leave out of training")
    command.add_argument(
        "--processes",
        type=reader(PositiveInt),
        metavar="N",
        help="default: all cores for large files, otherwise 1",
    )
    command.add_argument(
        "--beam",
        type=reader(str),
        nargs="?",
        const=(),
        metavar="OPTIONS",
        help="in a pipeline of Apache Beam, for example "
        "--beam='--runner=FlinkRunner --parallelism=16'",
    )
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="replace what is prepared in FOLDER",
    )
