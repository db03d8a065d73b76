"""Export to the packages of Argos Translate and LibreTranslate."""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import kseq
from kseq.files.new_folder import new_folder
from kseq.serving.ctranslate2_export import checked_spec, write_ctranslate2
from kseq.serving.generator import Generator

_VERSION = "1.0"  # of the package; a later one replaces it
_ARGOS = "1.9.0"  # from which on it is read


def export_argos(
    generator: Generator, path: Path, languages: Sequence[str]
) -> Path:
    """Writes a Transformer as a package of Argos Translate.

    That is a zip archive with the files of `export_ctranslate2`, of which the
    tokenizer of the source also joins the pieces of answers, and a
    description. It appears atomically.

    Args:
        generator: `kseq.serving.Generator`.
        path: `pathlib.Path` of a file that does not exist, NAME.argosmodel.
        languages: two str, the ISO 639 codes of source and target.

    Returns:
        `path`.

    Raises:
        UserError: see `export_ctranslate2`.
        DiskError: if the disk is full.

    Reference:
        https://github.com/argosopentech/argos-translate, "Package".
    """
    source, target = languages
    metadata = {
        "package_version": _VERSION,
        "argos_version": _ARGOS,
        "from_code": source,
        "from_name": source,
        "to_code": target,
        "to_name": target,
        "type": "translate",
    }
    top = f"translate-{source}_{target}-{_VERSION.replace('.', '_')}"
    spec = checked_spec(generator)
    with (
        new_folder(path, "package") as hidden,
        zipfile.ZipFile(hidden / "package", "w", zipfile.ZIP_DEFLATED) as file,
    ):
        model = hidden / "model"
        model.mkdir()
        write_ctranslate2(spec, generator, model, path.stem)
        file.writestr(f"{top}/metadata.json", json.dumps(metadata, indent=1))
        file.writestr(
            f"{top}/README.md",
            f"# {path.stem}\n\nFrom kseq {kseq.__version__}.\n",
        )
        file.write(model / "source.model", f"{top}/sentencepiece.model")
        for name in ("README.md", "source.model", "target.model"):
            (model / name).unlink()
        for each in sorted(model.iterdir()):
            file.write(each, f"{top}/model/{each.name}")
    return path
