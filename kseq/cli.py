"""The command line.

Each command is a module of `kseq.commands` with a function `run(options)`. None
is imported before the arguments are checked: help and errors do not wait for
TensorFlow.
"""

import argparse
import functools
import importlib
import sys
from typing import get_args

import kseq
from kseq.command_line.allow_op_option import add_allow_op
from kseq.command_line.argument_types import (
    existing_file,
    existing_folder,
    existing_path,
    find_models,
    model,
    model_or_file,
    output_file,
    reader,
)
from kseq.command_line.command_parser import CommandParser
from kseq.command_line.corpus_options import (
    add_check,
    add_features,
    add_prepare,
)
from kseq.command_line.exit_code import check_output_is_open, exit_code
from kseq.command_line.export_options import add_export
from kseq.command_line.option_checks import check_command
from kseq.command_line.option_types import (
    Metric,
    NonNegativeInt,
    PositiveInt,
    RunPath,
)
from kseq.command_line.search_options import (
    add_length_penalty,
    add_search,
    add_weights,
)
from kseq.command_line.serve_options import add_serve
from kseq.files.model_path import model_path, run_path
from kseq.process import OPTIONAL, start_keras

# Files are checked first; a recipe imports it itself.
_WITHOUT_KERAS = (
    *("check", "plan", "prepare", "publish", "recipes", "serve", "train"),
)
# What they print is all that they do.
_ANSWERING = "compare", "evaluate", "explain", "predict", "score"


def main(arguments=None):
    """Runs a command and returns its exit code; without one, shows the help."""
    words = sys.argv[1:] if arguments is None else arguments
    commands = [word for word in words if not word.startswith("-")]

    def read():
        return _parser().parse_args(words or ["--help"])

    return exit_code(read, _run, name=" ".join(["kseq", *commands[:1]]))


def _run(options):
    check_command(options)
    if options.command in _ANSWERING:
        check_output_is_open()
    if options.command not in _WITHOUT_KERAS:
        start_keras(without=OPTIONAL, for_search=True)
    command = importlib.import_module(f"kseq.commands.{options.command}")
    find_models(options)
    command.run(options)


@functools.cache
def _parser():
    parser = CommandParser(
        prog="kseq",
        description="Sequence-to-sequence and attention models in Keras. "
        "`kseq train` trains one;\nthe other commands use what it has trained. "
        "PATH is a run directory (runs/NAME),\nan export (saved_models/NAME "
        "or one of its versions), hf://OWNER/NAME, or a built-in\nmodel such "
        "as builtin://dates, which is trained on first use.",
    )
    parser.add_argument("--version", action="version", version=kseq.__version__)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True
    )
    _add_recipe(
        _command(commands, "train", "train a recipe, or list the recipes")
    )
    _add_plan(commands)
    add_check(_command(commands, "check", "report what is in training files"))
    add_prepare(
        _command(commands, "prepare", "check and tokenize large files once")
    )
    _add_predict(commands)
    _add_chat(commands)
    _add_score(commands)
    _add_evaluate(commands)
    _add_compare(commands)
    _add_explain(commands)
    _add_export(commands)
    add_serve(_command(commands, "serve", "answer requests over HTTP and gRPC"))
    _add_average(commands)
    _add_convert(commands)
    _add_publish(commands)
    _add_verify(commands)
    _add_path(
        _command(commands, "inspect", "describe a run or an export"), model_path
    )
    _add_recipes(commands)
    return parser


def _add_plan(commands):
    command = _command(
        commands, "plan", "forecast the time and memory of a training run"
    )
    command.add_argument(
        "--lr-find",
        type=output_file,
        metavar="FILE",
        help="suggest a learning rate instead, and plot the loss at each rate "
        "to FILE, a PNG image; give it before NAME",
    )
    _add_recipe(command)


def _add_recipe(command):
    command.add_argument(
        "recipe",
        nargs="?",
        metavar="NAME",
        help="name of a recipe, or path of your own recipe, such as ./NAME.py",
    )
    command.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="options of the recipe; `kseq train NAME --help` lists them",
    )


def _add_predict(commands):
    command = _command(
        commands, "predict", "answer each line of standard input"
    )
    _add_path(command, model_path)
    _add_more_runs(command)
    add_search(command)
    _add_inputs(command)
    command.add_argument(
        "--prefix",
        type=existing_file,
        metavar="FILE",
        help="file with a prefix for each answer, one per input line; a space "
        "at the end of a prefix completes its last word",
    )
    command.add_argument(
        "--glossary",
        type=existing_file,
        metavar="FILE",
        help="for a run: TSV of phrases and the translations that answers must "
        'contain, or, with "!" in a third column, must not contain',
    )
    command.add_argument(
        "--mbr",
        type=reader(PositiveInt),
        metavar="N",
        help="minimum Bayes risk: of N candidates, by beam search or sampling, "
        "choose the one with the highest mean chrF to all of them",
    )
    command.add_argument(
        "--n-best",
        type=reader(PositiveInt),
        default=1,
        metavar="N",
        help="N answers per line, separated by tabs",
    )
    for flag, help in (
        (
            "--paragraphs",
            "translate each sentence of a line separately",
        ),
        (
            "--markup",
            "the input is one HTML or XML document, whose text is translated",
        ),
        ("--stream", "print each answer while it is being generated"),
        ("--scores", "print a score before each answer"),
        ("--json", "print one JSON object per line"),
        ("--attention", "include attention weights in the JSON"),
        (
            "--word-probabilities",
            "include the words of each answer and their probabilities in the "
            "JSON, computed from the tokenizer's pieces",
        ),
    ):
        command.add_argument(flag, action="store_true", help=help)
    add_allow_op(command)


def _add_chat(commands):
    command = _command(commands, "chat", "chat with a dialogue model")
    _add_path(command, model_path)
    _add_more_runs(command)
    add_search(command, chats=True)
    add_allow_op(command)


def _add_score(commands):
    command = _command(
        commands,
        "score",
        "print the score of each given answer, in the tokenizer's pieces",
    )
    _add_path(command, model_path)
    _add_two_files(command, "TARGET")
    _add_more_runs(command, "--ensemble", nargs="+")
    add_weights(command)
    add_length_penalty(command)
    _add_inputs(command)
    add_allow_op(command)


def _add_evaluate(commands):
    command = _command(
        commands, "evaluate", "print BLEU, accuracy or error rates on a file"
    )
    _add_path(command, model_path)
    _add_two_files(command, "REFERENCE")
    _add_more_runs(command, "--ensemble", nargs="+")
    _add_examples(command)
    add_search(command)
    _add_inputs(command)
    add_allow_op(command)


def _add_compare(commands):
    command = _command(
        commands, "compare", "test whether one model is better than another"
    )
    for name in "ab":
        command.add_argument(
            name,
            type=model_or_file,
            metavar=name.upper(),
            help="a run, an export, or a file with an answer on each line",
        )
    _add_two_files(command, "REFERENCE")
    _add_examples(command)
    command.add_argument(
        "--show",
        type=reader(NonNegativeInt),
        default=3,
        metavar="N",
        help="show the N lines at which B is better by the most, and the N at "
        "which it is worse by the most; default: 3",
    )
    command.add_argument(
        "--page",
        type=output_file,
        metavar="FILE",
        help="also write the comparison as an HTML page, with the attention of "
        "both models",
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead of tables",
    )
    _add_inputs(command)
    add_allow_op(command)


def _add_explain(commands):
    command = _command(
        commands,
        "explain",
        "write an HTML page with the attention for each line",
    )
    _add_path(command, model_path)
    add_weights(command)
    _add_inputs(command)
    command.add_argument(
        "--images",
        type=reader(str),
        metavar="FOLDER",
        help="folder of the pictures of --features, to show them",
    )
    add_allow_op(command)


def _add_export(commands):
    command = _command(commands, "export", "export a model for serving")
    _add_path(command, run_path)
    _add_more_runs(command)
    add_search(command)
    add_export(command)


def _add_average(commands):
    command = _command(commands, "average", "average the weights of a run")
    _add_path(command, run_path)
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--last",
        type=reader(PositiveInt),
        default=5,
        metavar="N",
        help="average the last N checkpoints; default: 5",
    )
    which.add_argument(
        "--best",
        type=reader(PositiveInt),
        metavar="N",
        help="average the N best checkpoints by validation score, for a run "
        "with --average-of best",
    )


def _add_convert(commands):
    command = _command(
        commands, "convert", "convert a model of another toolkit to a run"
    )
    command.add_argument(
        "format",
        choices=["marian", "opennmt-tf"],
        metavar="FORMAT",
        help="marian: a Marian translator in the layout of transformers, such "
        "as an OPUS-MT model; opennmt-tf: a Transformer of OpenNMT-tf",
    )
    command.add_argument(
        "folder",
        type=existing_folder,
        metavar="FOLDER",
        help="marian: a folder with config.json, vocab.json, source.spm, "
        "target.spm and model.safetensors or pytorch_model.bin, or "
        "hf://OWNER/NAME. opennmt-tf: a folder of checkpoints; the last one is "
        "converted",
    )
    command.add_argument(
        "run",
        type=reader(RunPath),
        metavar="RUN",
        help="directory of the new run",
    )
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing RUN",
    )
    group = command.add_argument_group("options of opennmt-tf")
    for name, content in (
        ("--vocabulary", "vocabularies, with one token per line"),
        ("--sentencepiece", "SentencePiece models; both may be the same file"),
    ):
        group.add_argument(
            name,
            type=existing_file,
            nargs=2,
            metavar=("SOURCE", "TARGET"),
            help=content,
        )
    group.add_argument(
        "--heads",
        type=reader(PositiveInt),
        metavar="N",
        help="number of attention heads; needed if the model is not one of "
        "OpenNMT-tf's own",
    )
    group.add_argument(
        "--source-end",
        action="store_true",
        help="for models trained with source_sequence_controls: {end: true}",
    )


def _add_publish(commands):
    command = _command(
        commands, "publish", "upload a model to the Hugging Face Hub"
    )
    _add_path(command, model_path)
    command.add_argument(
        "name",
        metavar="OWNER/NAME",
        help="name of the repository, which is created if it does not exist",
    )
    command.add_argument(
        "--private",
        action="store_true",
        help="create a private repository",
    )


def _add_verify(commands):
    command = _command(
        commands,
        "verify",
        "replay the first steps of a run and compare the results bit for bit",
    )
    _add_path(command, run_path)
    command.add_argument(
        "--steps",
        type=reader(PositiveInt),
        metavar="N",
        help="steps to replay; default: up to the first recorded step",
    )


def _add_recipes(commands):
    command = _command(commands, "recipes", "list the recipes, or copy one")
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    copy = _described(actions, "copy", "write NAME.py into this folder")
    copy.add_argument("name", metavar="NAME", help="name of a recipe")


def _command(commands, name, help):
    command = _described(commands, name, help)
    command.add_argument(
        "--debug", action="store_true", help="show the traceback of errors"
    )
    return command


def _described(commands, name, help):
    description = f"{help[0].upper()}{help[1:]}."
    return commands.add_parser(name, help=help, description=description)


def _add_path(command, type):
    command.add_argument("path", type=model(type), metavar="PATH")


def _add_more_runs(command, name="ensemble", nargs="*"):
    """More models beside that of PATH; an option where files follow it."""
    command.add_argument(
        name,
        type=model(run_path),
        nargs=nargs,
        default=(),  # otherwise argparse calls it required
        metavar="RUN",
        help="more runs, to form an ensemble: the probabilities of all models "
        "are averaged",
    )


def _add_two_files(command, second):
    command.add_argument("source", type=existing_path, metavar="SOURCE")
    command.add_argument(
        second.lower(), type=existing_file, metavar=second, nargs="?"
    )


def _add_examples(command):
    """What the examples of an evaluation are, and how answers are scored."""
    command.add_argument(
        "--columns",
        nargs="+",
        metavar="COLUMN",
        help="columns of SOURCE: label and text (default: label text), words "
        "and tags, picture and caption, recording and transcript, source and "
        "reference, or running text",
    )
    command.add_argument(
        "--metrics",
        choices=get_args(Metric),
        nargs="+",
        help="metrics of generated texts; default: bleu chrf exact_match, and "
        "cer wer exact_match for speech",
    )
    command.add_argument(
        "--images",
        type=reader(str),
        metavar="FOLDER",
        help="folder of the pictures named in SOURCE",
    )
    command.add_argument(
        "--audio",
        type=reader(str),
        metavar="FOLDER",
        help="folder of the recordings named in SOURCE; default: the folder of "
        "SOURCE",
    )
    command.add_argument(
        "--plain",
        action="store_true",
        help="captions in lower case, without punctuation",
    )


def _add_inputs(command):
    """How inputs are read and batched."""
    command.add_argument(
        "--batch-size",
        type=reader(PositiveInt),
        metavar="B",
        help="lines per batch; default: 32 to 128 by length, 1,024 on a GPU",
    )
    add_features(command)
    command.add_argument(
        "--resample",
        action="store_true",
        help="resample recordings to the sample rate of the model",
    )


if __name__ == "__main__":
    sys.exit(main())
