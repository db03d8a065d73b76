"""Small files that a recipe trains on."""

import numpy as np

from kseq.data import dates, dispatch_reports
from kseq.data.dialogues.small_talk import small_talk
from kseq.data.pictures.image_preprocessor import cells_of
from kseq.data.pictures.scenes import scenes
from kseq.data.speech.morse import morse
from kseq.data.tags.journeys import journeys


def write_files(recipe, folder, size=None):
    """Writes `left`, `right`, `table.tsv`, `dialogues.txt` and features.

    Args:
        recipe: str, its name.
        folder: path.
        size: int, examples; None for as many as a training of seconds needs.

    Returns:
        A dict of the fields of the recipe's config that name the files.
    """
    columns, fields = _WRITERS.get(recipe, _dates)(folder, size)
    for name, rows in zip(("left", "right"), columns, strict=True):
        (folder / name).write_text("\n".join(rows), "utf-8")
    rows = [*zip(*columns, strict=True)]
    table = "\n".join(map("\t".join, rows))
    (folder / "table.tsv").write_text(table, "utf-8")
    dialogues = "\n\n".join(map("\n".join, rows))
    (folder / "dialogues.txt").write_text(dialogues, "utf-8")
    return fields


def _dates(folder, size):
    return dates("train", size=size or 200), {"train": ("table.tsv",)}


def _reports(folder, size):
    documents = dispatch_reports("train", size=size or 200)
    _write_vectors(folder, documents.texts)
    return (documents.labels, documents.texts), {"train": "table.tsv"}


def _tagged(folder, size):
    texts, tags = journeys("train", size=size or 200)
    _write_vectors(folder, texts)
    return (texts, list(map(" ".join, tags))), {"train": "table.tsv"}


def _write_vectors(folder, texts, dim=8):
    """Of the words of texts, in `vectors.txt`."""
    words = sorted({word for text in texts for word in text.split()})
    rows = np.random.default_rng(1).normal(size=(len(words), dim)).astype(str)
    lines = map(" ".join, zip(words, map(" ".join, rows), strict=True))
    (folder / "vectors.txt").write_text("\n".join(lines), "utf-8")


def _captions(folder, size):
    found = scenes("train", size=size or 40)
    names = [f"{number}.png" for number in range(len(found.pictures))]
    pairs = [
        (name, text)
        for name, texts in zip(names, found.references, strict=True)
        for text in texts
    ]
    cells = cells_of(found.pictures, side=12)
    np.savez(folder / "features.npz", features=cells, names=names)
    return [*zip(*pairs, strict=True)], _WITH_FEATURES


def _speech(folder, size):
    texts = morse("train", size=size or 40).texts
    names = [f"{number}.wav" for number in range(len(texts))]
    np.savez(
        folder / "features.npz",
        features=np.random.default_rng(1).normal(size=(20 * len(texts), 8)),
        lengths=np.full(len(texts), 20),
        names=names,
    )
    return (names, texts), _WITH_FEATURES


def _words(folder, size):
    (names, _), fields = _speech(folder, size)
    return (names, [("yes", "no")[i % 2] for i in range(len(names))]), fields


def _dialogues(folder, size):
    size = size or 60
    answers = small_talk("train", size=size).answers
    return (answers, ["Yes."] * size), {"train": "dialogues.txt"}


def _text(folder, size):
    return dates("train", size=size or 200), {"train": "left"}


_WITH_FEATURES = {"train": "table.tsv", "features": "features.npz"}
_WRITERS = {
    "classify_documents": _reports,
    "tag_words": _tagged,
    "caption_images": _captions,
    "transcribe_speech": _speech,
    "spot_words": _words,
    "chat": _dialogues,
    "retrieve_answers": _dialogues,
    "write_text": _text,
}
