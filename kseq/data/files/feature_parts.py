"""Features of files, computed in parts by several processes."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.files.process_jobs import run_part_jobs
from kseq.files.atomic_write import replace_file
from kseq.files.json_files import read_json, to_json

PART_SIZE = 2**26  # bytes of files; the same for any number of processes
_MOST_FILES = 2**10  # of a part: small ones need as long for each as large ones


class FeatureJob(NamedTuple):
    """The files of a part.

    Args:
        part: path of its files without their ends.
        compute: function of `files`; gives features (M, F), how many of them
            each file has, and lines of text about single files.
        files: what the function is called with.
    """

    part: str
    compute: Callable[[Any], tuple[np.ndarray, list[int], list[str]]]
    files: Any


def compute_part(job: FeatureJob):
    """Writes the features of a part."""
    values, lengths, notes = job.compute(job.files)
    replace_file(f"{job.part}.values", values.tobytes())
    facts = {"lengths": lengths, "notes": notes, "shape": values.shape[1:]}
    replace_file(f"{job.part}.json", to_json(facts).encode())


def files_hash(sizes: dict[str, int]) -> str:
    """Identifies files by their names and sizes; they are not read."""
    return hashlib.sha256(json.dumps([*sizes.items()]).encode()).hexdigest()


def compute_features(
    prepared: PreparedFolder,
    path: str,
    compute: Callable,
    files: dict[str, Any],
    sizes: Sequence[int],
    part_size: int = PART_SIZE,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    batch: int = 1,
) -> tuple[tuple[int, ...], np.ndarray, list[str]]:
    """Computes features in parts, and joins them; resumes.

    Args:
        prepared: where they are written; it is locked.
        path: of the features, one file after the other, without ".values".
        compute: see `FeatureJob`; can be pickled.
        files: name -> what else is known of the file.
        sizes: bytes of each file.
        part_size: bytes of files that a process computes together; at most
            about a thousand files.
        processes: see `prepare_pairs`.
        beam: see `prepare_pairs`.
        batch: the number of files of a part is a multiple of it.

    Returns:
        Their shape (M, F), how many rows each file has, and lines of text
        about single files.
    """
    jobs, bytes_of_jobs = [], []
    for (name, known), size in zip(files.items(), sizes, strict=True):
        count = len(jobs[-1].files) if jobs else 0
        is_large = count >= _MOST_FILES or sum(bytes_of_jobs[-1:]) >= part_size
        if not jobs or (is_large and not count % batch):
            part = str(prepared.parts / f"{len(jobs):06}")
            jobs.append(FeatureJob(part, compute, {}))
            bytes_of_jobs.append(0)
        jobs[-1].files[name] = known
        bytes_of_jobs[-1] += size
    sized = zip(jobs, bytes_of_jobs, strict=True)
    run_part_jobs(
        *("Computing features", compute_part, sized, ".json", processes, beam)
    )
    return _joined(path, jobs)


def _joined(path, jobs):
    lengths, notes, shape = [], [], ()
    with open(f"{path}.values", "wb") as file:
        for job in jobs:
            facts = read_json(Path(f"{job.part}.json"))
            lengths += facts["lengths"]
            notes += facts["notes"]
            shape = tuple(facts["shape"])
            file.write(Path(f"{job.part}.values").read_bytes())
    return (sum(lengths), *shape), np.array(lengths, np.int64), notes
