"""Options of `kseq export`."""

from kseq.command_line.argument_types import reader
from kseq.command_line.option_types import NewPath


def add_export(command):
    """Adds the options for what is written, and where."""
    command.add_argument(
        "--format",
        choices=("saved_model", "ctranslate2", "argos", "litert", "marian"),
        default="saved_model",
        help="default: saved_model. For text-to-text Transformers also "
        "ctranslate2, argos (a package for Argos Translate and "
        "LibreTranslate) and, with --norm post, marian (for Hugging Face's "
        "transformers). For translators and document classifiers also litert "
        "(for phones)",
    )
    command.add_argument(
        "--languages",
        type=reader(str),
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="language codes for --format argos, such as: de en",
    )
    command.add_argument(
        "--quantize",
        choices=("bfloat16", "float16", "int8"),
        help="store the matrices in fewer bits: bfloat16 or int8 for a "
        "saved_model, float16 or int8 for litert; default: float32",
    )
    command.add_argument(
        "--to",
        type=reader(NewPath),
        metavar="DIRECTORY",
        help="folder for the new version; default: saved_models/NAME. For "
        "ctranslate2, litert and marian: a new folder; default: "
        "ctranslate2_models/NAME, litert_models/NAME, marian_models/NAME. For "
        "argos: a new file; default: argos_models/NAME.argosmodel",
    )
