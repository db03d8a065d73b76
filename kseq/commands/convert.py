"""kseq convert: a model of another toolkit becomes a run."""

import dataclasses
import hashlib
import shlex
import sys

from kseq.answers.describe_task import describe_task
from kseq.command_line.option_types import option
from kseq.conversion import read_marian, read_opennmt_tf
from kseq.files.atomic_write import atomic_write
from kseq.files.hub import hub_folder, is_hub
from kseq.runs import RunDirectory
from kseq.runs.checkpoint_files import write_checkpoint
from kseq.runs.model_card import Progress, model_card
from kseq.terminal import escaped_line
from kseq.user_error import UserError

# Its weights in one of these two; many repositories have others, too.
_FILES = ["*.json", "*.spm"]
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def run(options):
    """Writes the run, and prints what to do with it."""
    toolkit, read = _FORMATS[options.format]
    folder, found = read(options)
    model = found.generator.model
    weights = [variable.value for variable in model.variables]
    digest = _digest(model.trainable_variables)  # not the seeds of dropout
    config = _config({**found.options, "weights_sha256": digest})
    run = RunDirectory(options.run)
    run.start(config, overwrite=options.overwrite)
    run.save(found.generator, keep=1)
    write_checkpoint(run.checkpoints / "best", 0, 1, vars=weights)
    progress = Progress(
        step=0,
        total_steps=0,
        parameters=model.count_params(),
        command=["kseq", *sys.argv[1:]],
        origin=f"model {folder.name} of {toolkit}",
    )
    card = model_card(run, progress, describe_task(run))
    atomic_write(run.readme, card)
    path = escaped_line(shlex.quote(str(run.path)))
    print(f"{path}: {model.count_params():,} parameters")
    print(f"Answers to your own:  kseq predict {path} < FILE")


def _marian(options):
    """The folder, and the model in it."""
    for name in ("vocabulary", "sentencepiece", "heads", "source_end"):
        if getattr(options, name):
            raise UserError(f"marian has no {option(name)}.")
    folder = options.folder
    if is_hub(folder):
        folder = _copy(folder)
    return folder, read_marian(folder)


def _opennmt_tf(options):
    """The folder, and the model in it."""
    files = options.vocabulary, options.sentencepiece
    if is_hub(options.folder) or not all(files):
        raise UserError(
            "opennmt-tf needs a local folder, --vocabulary and "
            "--sentencepiece: only models tokenized by SentencePiece are "
            "converted."
        )
    return options.folder, read_opennmt_tf(
        *(options.folder, *files),
        heads=options.heads,
        source_end=options.source_end,
    )


_FORMATS = {
    "marian": ("Marian", _marian),
    "opennmt-tf": ("OpenNMT-tf", _opennmt_tf),
}


def _copy(url):
    for name in _WEIGHTS:
        folder = hub_folder(url, [*_FILES, name])
        if (folder / name).is_file():
            break
    return folder


def _digest(variables):
    """What distinguishes models of the same sizes."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(variable.numpy().tobytes())
    return digest.hexdigest()


def _config(options):
    """The options as a dataclass, which a run expects."""
    fields = [(name, type(value)) for name, value in options.items()]
    return dataclasses.make_dataclass("Config", fields)(**options)
