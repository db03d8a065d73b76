"""Parts of parallel text: checked, and later tokenized, by any process."""

import itertools
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kseq.data.files.data_error import DataError
from kseq.data.files.line_ranges import LineRange, read_ranges
from kseq.data.text.alignments import align_pieces
from kseq.data.text.line_filters import LineFilters, kept_pairs
from kseq.data.text.pair_blocks import Block, blocks_of, pair_hashes
from kseq.data.text.parallel_text import ParallelText
from kseq.data.text.tokenizer import Tokenizer
from kseq.files.atomic_write import replace_file
from kseq.files.json_files import to_json

FILTERED = "filtered "
SIDES = ("source", "target", "alignment")  # of a part, which may have two
PART_SIZE = 2**23  # bytes of text, about; the same for any number of processes
_TOKENIZED = 8192  # texts that are tokenized together


class ReadJob(NamedTuple):
    """Pairs to read and check.

    Args:
        part: with which the paths of its parts begin.
        text: which has the pairs.
        ranges: those of source and target; None to read `path`, or all.
        path: of a file of a table.
        part_size: bytes of text of a part.
        filters: of the pairs, or None.
    """

    part: str
    text: ParallelText
    ranges: tuple[list[LineRange], list[LineRange]] | None = None
    path: str | None = None
    part_size: int = PART_SIZE
    filters: LineFilters | None = None


class TokenizeJob(NamedTuple):
    """A part to tokenize.

    Args:
        part: path of its files without their ends.
        held_out: path of the sorted hashes of sources that are held out.
        models: paths of the models of source and target.
        dtype: of ids.
    """

    part: str
    held_out: str
    models: tuple[str, str]
    dtype: str


def read_pairs(job: ReadJob):
    """Reads and checks pairs, and writes their parts; see `write_parts`."""
    counts = Counter()
    if job.ranges is None:
        blocks = job.text.usable_blocks(counts, job.path)
    else:
        sources, targets = map(read_ranges, job.ranges)
        if len(sources) != len(targets):
            raise DataError(f"{job.text} has changed while it was read.")
        blocks = blocks_of(sources, targets, counts)
    if job.filters is not None:
        blocks = _filtered(blocks, job.filters, counts)
    write_parts(job, blocks, counts)


def _filtered(blocks, filters, counts):
    for block in blocks:
        kept, left_out = kept_pairs(*block[:2], filters)
        for reason, number in left_out.items():
            counts[f"{FILTERED}{reason}"] += number
        yield [list(itertools.compress(side, kept)) for side in block]


def write_parts(
    job: ReadJob, blocks: Iterable[Block], counts: Counter
) -> dict[str, Any]:
    """Writes pairs and their hashes in parts.

    Args:
        job: whose part.json is written last.
        blocks: of usable pairs.
        counts: counts the pairs while `blocks` is read, see `TextReport`; and
            those that filters leave out, as `FILTERED` and the reason.

    Returns:
        The counts, and the names and sizes of the parts.
    """
    parts, sides, size = [], [], 0

    def write():
        path = f"{job.part}-{len(parts):05}"
        _write_part(path, sides)
        name = os.path.basename(path)
        parts.append({"name": name, "pairs": len(sides[0])})

    for block in blocks:
        sides = sides or [[] for _ in block]
        for side, texts in zip(sides, block, strict=True):
            side += texts
            size += sum(map(len, texts))
        if size >= job.part_size and job.ranges is None:
            write()
            sides, size = [], 0
    if any(sides):
        write()
    summary = {"counts": dict(counts), "parts": parts}
    replace_file(f"{job.part}.json", to_json(summary).encode())
    return summary


def _write_part(path, sides):
    # Each file replaces one of another process that was killed.
    for name, texts in zip(SIDES, sides, strict=False):
        text = b"".join([b"%b\n" % line for line in texts])
        replace_file(f"{path}.{name}", text)
    sources, pairs = pair_hashes(*sides[:2])
    hashes = np.stack([sources, np.sort(sources), np.sort(pairs)])
    replace_file(f"{path}.hashes", hashes.tobytes())


def unique_part(
    path: Path, repeated: np.ndarray, is_known: np.ndarray
) -> str | None:
    """Leaves out pairs of a part that it, or a part before, has already.

    The part is not changed: whoever resumes finds the same.

    Args:
        path: of the part.
        repeated: sorted hashes of the pairs that there are several of.
        is_known: of each whether a part before had it; is updated.

    Returns:
        The name of a part beside it without them, that of the part itself if
        none of its pairs is repeated, or None if it has no other pair.
    """
    if not np.isin(part_hashes(path)[2], repeated).any():
        return path.name
    sides = part_lines(path)
    _, hashes = pair_hashes(*sides[:2])
    places = np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)
    are_repeated = repeated[places] == hashes
    _, firsts = np.unique(hashes, return_index=True)
    kept = np.zeros(len(hashes), bool)
    kept[firsts] = True
    kept &= ~(are_repeated & is_known[places])
    is_known[places[are_repeated]] = True
    if not kept.any():
        return None
    name = f"{path.name}-unique"
    sides = [list(itertools.compress(side, kept)) for side in sides]
    _write_part(path.with_name(name), sides)
    return name


def part_hashes(path: str | os.PathLike) -> np.ndarray:
    """(3, N) int64: of sources in order; sorted: of sources, and of pairs."""
    return np.memmap(f"{path}.hashes", np.int64, "r").reshape(3, -1)


def part_lines(path: str | os.PathLike) -> list[list[bytes]]:
    """The sources, the targets and the alignments, if any, of a part."""
    paths = [Path(f"{path}.{side}") for side in SIDES]
    return [
        path.read_bytes().split(b"\n")[:-1] for path in paths if path.exists()
    ]


def is_held_out(path: str | os.PathLike, held_out: np.ndarray) -> np.ndarray:
    """(N,) bool, which pairs of a part have one of the sources."""
    return np.isin(part_hashes(path)[0], held_out)


def tokenize_part(job: TokenizeJob):
    """Writes the ids of a part, and apart its pairs that are held out."""
    is_out = is_held_out(job.part, np.fromfile(job.held_out, np.int64))
    tokenizers = [Tokenizer.load(path) for path in job.models]
    sides = part_lines(job.part)
    kept = [list(itertools.compress(texts, ~is_out)) for texts in sides]
    lengths, values = [], []
    for name, texts, trained, tokenizer in zip(
        SIDES, sides, kept, tokenizers, strict=False
    ):
        held = [b"%b\n" % text for text in itertools.compress(texts, is_out)]
        replace_file(f"{job.part}.held_out.{name}", b"".join(held))
        blocks = [
            tokenizer.encode_with_end(trained[start : start + _TOKENIZED])
            for start in range(0, len(trained), _TOKENIZED)
        ]
        ids = [np.zeros(0, job.dtype), *(ids for ids, _ in blocks)]
        values.append(np.concatenate(ids).astype(job.dtype))
        lengths += [of_block.astype(np.int32) for _, of_block in blocks]
    counts = np.array([len(kept[0]), *map(len, values)], np.int64)
    if len(sides) > 2:
        values.append(_alignment(tokenizers, *kept))
    content = [each.tobytes() for each in (counts, *lengths, *values)]
    replace_file(f"{job.part}.ids", b"".join(content))


def _alignment(tokenizers, sources, targets, links) -> np.ndarray:
    """What is aligned to the ids of the targets, nothing to END; uint16."""
    found: list[int] = []
    for start in range(0, len(links), _TOKENIZED):
        block = slice(start, start + _TOKENIZED)
        words = (
            tokenizer.words_of_pieces(texts[block])
            for tokenizer, texts in zip(
                tokenizers, (sources, targets), strict=True
            )
        )
        for each in zip(links[block], *words, strict=True):
            found += [*align_pieces(*each), 0]
    return np.array(found, np.uint16)


def part_ids(
    path: str | os.PathLike, dtype: str
) -> tuple[list[np.ndarray], np.ndarray]:
    """What `tokenize_part` has written, END included.

    Returns:
        The ids of the sources, those of the targets, and the numbers of
        `align_pieces` for these, none where there is no alignment; and the
        lengths of sources and targets, (2, N) int32.
    """
    with open(f"{path}.ids", "rb") as file:
        pairs, sources, targets = np.fromfile(file, np.int64, 3)
        lengths = np.fromfile(file, np.int32, 2 * pairs).reshape(2, pairs)
        counts = (sources, dtype), (targets, dtype), (-1, np.uint16)
        ids = [np.fromfile(file, each, count) for count, each in counts]
    return ids, lengths
