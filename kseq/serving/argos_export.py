"""Export to the packages of Argos Translate and LibreTranslate."""

import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import kseq
from kseq.serving.ctranslate2_export import export_ctranslate2
from kseq.serving.generator import Generator
from kseq.user_error import UserError, write_error

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
    if path.exists():
        raise UserError(f"{path} exists; give a new file with --to.")
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            model = export_ctranslate2(generator, Path(folder) / "model")
            hidden = Path(folder) / "package"
            with zipfile.ZipFile(hidden, "w", zipfile.ZIP_DEFLATED) as archive:
                text = json.dumps(metadata, indent=1)
                archive.writestr(f"{top}/metadata.json", text)
                archive.writestr(
                    f"{top}/README.md",
                    f"# {path.stem}\n\nFrom kseq {kseq.__version__}.\n",
                )
                archive.write(
                    model / "source.model", f"{top}/sentencepiece.model"
                )
                for name in ("README.md", "source.model", "target.model"):
                    (model / name).unlink()
                for file in sorted(model.iterdir()):
                    archive.write(file, f"{top}/model/{file.name}")
            hidden.rename(path)
    except OSError as error:
        raise write_error(path, error) from error
    return path
