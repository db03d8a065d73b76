import errno
import json
import zipfile
from pathlib import Path

import ctranslate2
import pytest
import sentencepiece

from kseq.conversion import read_marian
from kseq.serving.argos_export import export_argos
from kseq.user_error import DiskError, UserError


@pytest.fixture(scope="module")
def generator(marian):
    return read_marian(marian / "trained").generator


def test_a_package_translates_as_argos_translate_does(generator, tmp_path):
    """With one tokenizer, that joins the pieces of the answer as well."""
    path = tmp_path / "new" / "opus.argosmodel"
    killed = path.with_name(f".{path.name}.partial") / "model"
    killed.mkdir(parents=True)
    assert export_argos(generator, path, ["de", "en"]) == path
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    [folder] = tmp_path.glob("translate-*")
    assert folder.name == "translate-de_en-1_0"
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["from_code"], metadata["to_code"]) == ("de", "en")
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "sentencepiece.model")
    )
    model = ctranslate2.Translator(str(folder / "model"))
    pieces = tokenizer.encode(["zwei rote Hunde", "fünf"], out_type=str)
    answers = model.translate_batch(pieces, beam_size=4, length_penalty=0.2)
    texts = [tokenizer.decode_pieces(each.hypotheses[0]) for each in answers]
    assert texts == ["two red dogs", "five"]
    with pytest.raises(UserError, match="exists; give a new path"):
        export_argos(generator, path, ["de", "en"])


def test_what_cannot_be_written_leaves_nothing(
    generator, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        export_argos(generator, tmp_path / "file" / "x", ["de", "en"])
    full = OSError(errno.ENOSPC, "No space left on device")

    def write_text(*_):
        raise full

    monkeypatch.setattr(Path, "write_text", write_text)
    path = tmp_path / "model"
    with pytest.raises(DiskError, match=f"{path} cannot be written: No space"):
        export_argos(generator, path, ["de", "en"])
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
