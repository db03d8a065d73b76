"""Options of `kseq export`."""

from kseq.command_line.argument_types import reader
from kseq.command_line.option_types import NewPath


def add_export(command):
    """Adds the options for what is written, and where."""
    command.add_argument(
        "--format",
        choices=("saved_model", "ctranslate2", "argos", "litert", "marian"),
        default="saved_model",
        help="default: saved_model; of a Transformer from text to text also "
        "ctranslate2, or argos, a package of Argos Translate and "
        "LibreTranslate; with --norm post also marian, for Hugging Face's "
        "transformers; of a translator or a classifier of documents also "
        "litert, for phones",
    )
    command.add_argument(
        "--languages",
        type=reader(str),
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="of a package of Argos Translate, such as: de en",
    )
    command.add_argument(
        "--quantize",
        choices=("bfloat16", "float16", "int8"),
        help="stores the matrices in fewer bits: bfloat16 or int8 of a "
        "saved_model, float16 or int8 for litert; default: float32",
    )
    command.add_argument(
        "--to",
        type=reader(NewPath),
        metavar="DIRECTORY",
        help="folder that gets a new version; default: saved_models/NAME. For "
        "ctranslate2, litert and marian a new folder; default: "
        "ctranslate2_models/NAME, litert_models/NAME and marian_models/NAME. "
        "For argos a new file, NAME.argosmodel; default: in argos_models",
    )
