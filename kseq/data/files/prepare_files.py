"""Prepares files in a folder: plans, or resumes, or refuses others."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.files.table_folders import is_text_folder
from kseq.data.files.text_files import matching_files
from kseq.data.files.text_folders import paths_in_folder

_NAMES = ("train", "validation", "features")


def prepare_files(
    folder: str | os.PathLike,
    kind: str,
    paths: tuple[str | os.PathLike | None, ...],
    options: dict[str, Any],
    prepare: Callable[[PreparedFolder, dict[str, Any]], dict[str, Any]],
    others: str = "",
):
    """Prepares a folder, unless it is complete.

    Args:
        folder: where to write.
        kind: of the data.
        paths: to train on, for validation or None, and perhaps of features or
            None; a pattern names several files, and a folder all in it.
        options: for JSON, on which the content of the folder depends.
        prepare: function of the folder and the options; resumes where it was
            interrupted, and returns what is recorded.
        others: see `PreparedFolder.follow`.

    Raises:
        DataError: the folder was prepared from different files or with
            different options.
    """
    found = {
        name: _files(path)
        for name, path in zip(_NAMES, paths, strict=False)
        if path is not None
    }
    with PreparedFolder.of(folder).locked() as prepared:
        plan = prepared.follow(kind, options, found, others)
        if not prepared.is_complete:
            record = prepare(prepared, plan["options"])
            prepared.finish({"kind": kind, "plan": plan, **record})


def _files(path) -> list[str]:
    if is_text_folder(path):
        return [str(Path(path, inner)) for inner in paths_in_folder(path)]
    return matching_files(path)
