"""Folders that are tables: of the library `datasets`, and of Parquet files."""

import os
import re
from collections import Counter
from pathlib import Path

from kseq.data.files.data_error import DataError
from kseq.files.json_files import read_json

_STATE, _SPLITS = "state.json", "dataset_dict.json"
_SHARD = re.compile(r"(.*)-\d+-of-0*(\d+)")  # train-00000-of-00005
_SPLIT = re.compile(r"train|test|valid|dev", re.IGNORECASE)


def kind_of_folder(path: str | os.PathLike) -> str | None:
    """The kind of the files that make a folder a table.

    Returns:
        "arrow" for what `Dataset.save_to_disk` of `datasets` writes, "parquet"
        for Parquet files; None for any other folder, and for a file.
    """
    try:
        names = os.listdir(path)
    except (OSError, ValueError):
        return None
    if _STATE in names or _SPLITS in names:
        return "arrow"
    return "parquet" if any(map(_is_parquet, names)) else None


def is_text_folder(path: str | os.PathLike) -> bool:
    """Whether a path is a folder that is no table."""
    return os.path.isdir(path) and kind_of_folder(path) is None


def files_of_folder(path: str, kind: str) -> list[str]:
    """The files of a folder that is a table, in their order.

    Raises:
        DataError: they are several splits, incomplete, or not as `datasets`
            writes them.
    """
    names = _parquet_names(path) if kind == "parquet" else _arrow_names(path)
    return [os.path.join(path, name) for name in names]


def _is_parquet(name):
    return name.lower().endswith(".parquet")


def _parquet_names(path):
    names = sorted(filter(_is_parquet, os.listdir(path)))
    splits, shards = set(), Counter()
    for name in names:
        stem = os.path.splitext(name)[0]
        if shard := _SHARD.fullmatch(stem):
            splits.add(shard[1])
            shards[int(shard[2])] += 1
        elif split := _SPLIT.match(stem):
            splits.add(split[0])
    if len(splits) > 1:
        raise DataError(
            f"{path} has several splits: "
            f"{', '.join(sorted(splits))}. Give the files of one as a pattern "
            f"in quotes: '{path}/{max(splits)}*.parquet'"
        )
    for number, found in shards.items():
        if number != found:
            raise DataError(
                f"{path}: expected {number} Parquet files; found "
                f"{found}. Is a download incomplete?"
            )
    return names


def _arrow_names(path):
    if not os.path.exists(os.path.join(path, _STATE)):
        splits = sorted(
            each.parent.name for each in Path(path).glob(f"*/{_STATE}")
        )
        raise DataError(
            f"{path} has several splits: {', '.join(splits) or 'none'}. Give "
            "the folder of one."
        )
    state = read_json(Path(path, _STATE))
    if state.get("_indices_data_files"):
        raise DataError(
            f"{path}: its rows are chosen by a file of indices. Save it again "
            "with datasets: flatten_indices().save_to_disk(FOLDER)"
        )
    files = state.get("_data_files")
    names = [
        file.get("filename") if isinstance(file, dict) else None
        for file in (files if isinstance(files, list) else [None])
    ]
    if not all(
        isinstance(file, str) and os.path.basename(file) == file and file
        for file in names
    ):
        raise DataError(
            f"{path}/{_STATE} is broken: expected the names of files in "
            f"'_data_files'. Received: {files!r:.80}"
        )
    if not names:
        raise DataError(f"{path} is empty: it has no rows.")
    return names
