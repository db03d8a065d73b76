"""Prepares parallel text for training: checks it and tokenizes it once."""

import contextlib
import dataclasses
import functools
import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from kseq.data.files.compressed_files import compression_of
from kseq.data.files.corpora import (
    logged,
    refuse_prepared,
    refuse_without_train,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.hash_partitions import (
    SortedHashes,
    held_out_hashes,
    partitions,
)
from kseq.data.files.hold_out import overlap
from kseq.data.files.line_ranges import (
    LineRange,
    split_at_lines,
    split_by_size,
)
from kseq.data.files.prepared_folder import (
    MODELS,
    PreparedFolder,
    content_hash,
    prepared_folder,
)
from kseq.data.files.process_jobs import run_part_jobs
from kseq.data.files.ragged_array import dtype_of_ids
from kseq.data.files.text_files import read_lines
from kseq.data.text.corpus import (
    are_tables,
    checked_weights,
    pair_facts,
    read_corpus,
    refuse_split,
    text_problems,
)
from kseq.data.text.dates import SIZES, dates
from kseq.data.text.line_filters import LineFilters
from kseq.data.text.pair_parts import (
    FILTERED,
    PART_SIZE,
    SIDES,
    ReadJob,
    TokenizeJob,
    is_held_out,
    part_hashes,
    part_ids,
    part_lines,
    read_pairs,
    tokenize_part,
    unique_part,
    write_parts,
)
from kseq.data.text.pair_tokenizers import (
    PairTokenizers,
    refuse_other_tokenizers,
)
from kseq.data.text.parallel_text import ParallelText, texts_of_splits
from kseq.data.text.prepared_pairs import (
    KIND,
    PreparedPairs,
    open_prepared,
)
from kseq.data.text.text_report import TextReport
from kseq.data.text.tokenizer import Tokenizer
from kseq.files.atomic_write import atomic_write, replace_file
from kseq.files.json_files import read_json
from kseq.terminal import escaped_line, progress

_SIDES = ("source", "target")
_BLOCK = 1024  # pairs whose lines train a tokenizer together


def prepare_pairs(
    folder: str | os.PathLike,
    train: Sequence[str | os.PathLike] | None = None,
    validation: Sequence[str | os.PathLike] | None = None,
    columns: Sequence[str] = (),
    *,
    weights: Sequence[float] = (),
    tokenizers: PairTokenizers | None = None,
    filters: LineFilters | None = None,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> PreparedPairs:
    r"""Checks and tokenizes pairs once, and writes a folder to train from.

    The pairs, the held-out part and the problems are those of `read_corpus`.
    The same files give the same bytes, whatever the number of processes. If the
    process ends before it has finished, the same call resumes; if the folder is
    complete, it is opened.

    Args:
        folder: where to write. It has the ids of training in files that are
            read without loading them, validation pairs as text, and the
            tokenizers.
        train: see `read_corpus`; or a folder that is prepared already.
        validation: see `read_corpus`.
        columns: see `read_corpus`. A third one has the alignment of the words
            of each pair of `train`, as word aligners write it: "0-0 1-2", a
            source word and a target word, counted from 0, between white space.
            It may be blank.
        weights: see `read_corpus`; the folder does not depend on them.
        tokenizers: how the tokenizers are made. Those that are kept must be
            those of a folder that is prepared already.
        filters: of the pairs of `train`; of equal pairs in all files the first
            is kept.
        processes: number of processes. By default all cores for large files,
            and this process alone for others.
        beam: options of a pipeline of Apache Beam, whose workers read and
            tokenize in place of these processes. They need kseq, and the
            files and the folder under the same paths.
        log: whether to log the facts, and the problems as warnings.
        part_size: bytes of text that a process reads together.

    Raises:
        DataError: a file cannot be used, or the folder was prepared from
            different files or with different options.
        DiskError: the disk is full.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("Go.\tLos.\nHi.\tHallo.\n")
    >>> tokenizers = PairTokenizers(270)
    >>> pairs = prepare_pairs("prepared", ["a.tsv"], tokenizers=tokenizers)
    >>> len(pairs.source), len(pairs.validation)
    (1, 1)
    """
    tokenizers = tokenizers or PairTokenizers()
    if prepared_folder(train):
        refuse_prepared(filters=filters)
        found = read_corpus(train, validation, columns, weights, log=False)
        refuse_other_tokenizers(tokenizers.kept, found.tokenizers)
        return logged(found, log)
    texts: tuple[ParallelText, ...] = ()
    others: tuple[ParallelText, ...] = ()
    if train is None:
        refuse_without_train(
            validation=validation, columns=columns, weights=weights
        )
    else:
        texts, others = texts_of_splits(train, validation, columns)
    splits = {"train": texts, "validation": others}
    weights = checked_weights(weights, texts)
    options = {
        "columns": [*columns],
        "tokenizers": tokenizers.options(),
        "filters": filters and dataclasses.asdict(filters),
        "part_size": part_size,
    }
    paths = {
        f"{split} {number} {side}": found
        for split, each in splits.items()
        for number, text in enumerate(each)
        for side, found in zip(_SIDES, text.files(), strict=False)
    }
    with PreparedFolder.of(folder).locked() as prepared:
        plan = prepared.follow(
            *(KIND, options, paths),
            read=functools.partial(_jobs_and_hashes, splits, part_size),
        )
        if not prepared.is_complete:
            preparation = _Preparation(prepared, splits, plan, processes, beam)
            record = preparation.read()
            preparation.tokenize(tokenizers)
            record |= preparation.join()
            prepared.finish({"kind": KIND, "plan": plan, **record})
    prepared = dataclasses.replace(open_prepared(folder), weights=weights)
    return logged(prepared, log)


def _jobs_and_hashes(splits, part_size):
    """What is read, in jobs that depend on the files alone."""
    texts, hashes = [], {}
    for text in itertools.chain.from_iterable(splits.values()):
        jobs, of_text = _jobs_of(text, part_size)
        texts.append({"jobs": jobs})
        hashes |= of_text
    return {"texts": texts}, hashes


def _jobs_of(text, part_size):
    sides = text.files()
    files = [*itertools.chain.from_iterable(sides)]
    for path in files:
        if text.target is not None:
            next(read_lines(path))  # raises an error if it is no text
    with progress(f"Reading {escaped_line(text)}"):
        if text.target is None or any(map(compression_of, files)):
            numbers = range(len(files)) if text.target is None else [None]
            jobs = [{"file": number} for number in numbers]
            return jobs, {path: content_hash(path) for path in files}
        return _ranges(text, sides, part_size // 2)


def _ranges(text, sides, size):
    sources = split_by_size(sides[0], size)
    targets = split_at_lines(sides[1], sources.ends)
    text.refuse_unequal(sources.ends[-1], targets.ends[-1])
    numbers = [{path: n for n, path in enumerate(side)} for side in sides]
    jobs = [
        {
            "ranges": [
                [[number[path], start, end] for path, start, end in part]
                for number, part in zip(numbers, parts, strict=True)
            ]
        }
        for parts in zip(sources.parts, targets.parts, strict=True)
    ]
    return jobs, sources.digests | targets.digests


def _filtered_counts(counts: Counter) -> Counter:
    """How many pairs filters leave out, by reason."""
    return Counter(
        {
            key.removeprefix(FILTERED): number
            for key, number in counts.items()
            if key.startswith(FILTERED)
        }
    )


class _Preparation:
    """The steps of preparing; each resumes where it was interrupted."""

    def __init__(self, prepared, splits, plan, processes, beam):
        self.folder = prepared.path
        self.parts = prepared.parts
        self.splits = splits
        self.plan = plan
        self.processes = processes
        self.beam = beam
        filters = plan["options"].get("filters")
        self.filters = filters and LineFilters(**filters)
        self.names = {}  # split -> names of the parts of each text
        self.held_out = np.zeros(0, np.int64)
        self.tokenizers = None

    def read(self):
        """Reads and checks all texts, and chooses what is held out."""
        texts = [
            (split, text)
            for split in self.splits
            for text in self.splits[split]
        ]
        jobs = [self._jobs(number, *each) for number, each in enumerate(texts)]
        run_part_jobs(
            *("Reading", read_pairs, itertools.chain(*jobs), ".json"),
            *(self.processes, self.beam),
        )
        if not texts:
            return self._write_dates()
        self.names = {split: [] for split in self.splits}
        reports, filtered = {split: [] for split in self.splits}, []
        for (split, text), jobs_of_text in zip(texts, jobs, strict=True):
            counts, names = Counter(), []
            for job, _ in jobs_of_text:
                summary = read_json(Path(f"{job.part}.json"))
                counts.update(summary["counts"])
                names += [part["name"] for part in summary["parts"]]
            report = TextReport.of(counts)
            report.refuse_empty(text)
            reports[split].append(report)
            self.names[split].append(names)
            if self.filters and split == "train":
                filtered.append(_filtered_counts(counts))
        problems = self._filter(reports["train"], filtered)
        return self._split(reports, problems)

    def _jobs(self, number, split, text):
        """(ReadJob, bytes) of a text."""
        jobs, sides = self.plan["texts"][number]["jobs"], text.files()
        found = []
        size = sum(map(os.path.getsize, itertools.chain(*sides)))
        for job_number, job in enumerate(jobs):
            ranges, path = None, None
            if "ranges" in job:
                ranges = tuple(
                    [LineRange(paths[n], a, b) for n, a, b in part]
                    for paths, part in zip(sides, job["ranges"], strict=True)
                )
            elif job["file"] is not None:
                path = sides[0][job["file"]]
            part = self.parts / f"{number:03}-{job_number:06}"
            read = ReadJob(
                *(str(part), text, ranges, path),
                self.plan["options"]["part_size"],
                self.filters if split == "train" else None,
            )
            found.append((read, size // len(jobs)))
        return found

    def _write_dates(self):
        counts = Counter()
        for split in SIZES:
            sides = [[text.encode() for text in side] for side in dates(split)]
            job = ReadJob(str(self.parts / f"dates-{split}"), None)
            counts["pairs"] += len(sides[0])
            summary = write_parts(job, [tuple(sides)], counts)
            self.names[split] = [[part["name"] for part in summary["parts"]]]
        return {"facts": [], "problems": [], "of_tables": False}

    def _hashes(self, split, row):
        return [
            SortedHashes(str(path), row * size, size)
            for names in self.names[split]
            for name in names
            for path in [self.parts / f"{name}.hashes"]
            for size in [path.stat().st_size // 24]
        ]

    def _filter(self, reports, filtered) -> list[str]:
        """Leaves out duplicates, and says what filters leave out of texts."""
        if not self.filters:
            return []
        self._leave_out_duplicates()
        problems = []
        for text, report, counts, names in zip(
            *(self.splits["train"], reports, filtered, self.names["train"]),
            strict=True,
        ):
            pairs, kept = report.pairs - report.left_out, self._pairs(names)
            counts["duplicate"] += pairs - kept - counts.total()
            found = (
                f"{text}: filters leave out {pairs - kept} of {pairs} pairs: "
                f"{self.filters.described(counts)}."
            )
            if not kept:
                raise DataError(found)
            problems.append(found)
        return problems

    def _leave_out_duplicates(self):
        """Replaces parts by others; the first of equal pairs stays."""
        found = [np.zeros(0, np.int64)]
        for (hashes,) in partitions(self._hashes("train", 2)):
            values, counts = np.unique(hashes, return_counts=True)
            found.append(values[counts > 1])
        repeated = np.concatenate(found)
        if not len(repeated):
            return
        is_known = np.zeros(len(repeated), bool)
        for names in self.names["train"]:
            unique = [
                unique_part(self.parts / name, repeated, is_known)
                for name in names
            ]
            names[:] = filter(None, unique)

    def _pairs(self, names):
        return sum(part_hashes(self.parts / name).shape[1] for name in names)

    def _split(self, reports, problems):
        texts, others = self.splits["train"], self.splits["validation"]
        problems = text_problems(texts, reports["train"]) + problems
        pairs = [self._pairs(names) for names in self.names["train"]]
        if others:
            known, sources = [], 0
            for trained, judged in partitions(
                self._hashes("train", 1), self._hashes("validation", 1)
            ):
                known.append(np.isin(judged, trained))
                sources += len(np.unique(judged))
            problems += text_problems(others, reports["validation"])
            problems += overlap(np.concatenate(known), "source")
            counts = [r.pairs - r.left_out for r in reports["validation"]]
            kept = pairs
        else:
            self.held_out = held_out_hashes(self._hashes("train", 1))
            kept = [
                sum(np.count_nonzero(~self._is_out(name)) for name in names)
                for names in self.names["train"]
            ]
            refuse_split(texts, self.held_out, sum(pairs), kept)
            counts = [sum(pairs) - sum(kept)]
            sources = len(self.held_out)
        unique = sum(
            len(np.unique(hashes))
            for (hashes,) in partitions(self._hashes("train", 2))
        )
        return {
            "facts": pair_facts(
                *(texts, kept, others, counts, sources),
                unique=unique,
                total=sum(pairs),
            ),
            "problems": problems,
            "of_tables": are_tables(others or texts),
        }

    def _is_out(self, name):
        return is_held_out(self.parts / name, self.held_out)

    def lines(self, sides: Sequence[str] = _SIDES) -> Iterator[bytes]:
        """Sources and targets of the training pairs, as `Corpus.lines`."""
        pairs = self._training_pairs()
        while block := list(itertools.islice(pairs, _BLOCK)):
            for side, texts in zip(
                _SIDES, zip(*block, strict=True), strict=True
            ):
                if side in sides:
                    yield from texts

    def _training_pairs(self):
        for name in itertools.chain.from_iterable(self.names["train"]):
            pairs = zip(*part_lines(self.parts / name)[:2], strict=True)
            yield from itertools.compress(pairs, ~self._is_out(name))

    def tokenize(self, tokenizers):
        """Makes the tokenizers, and the ids of the training pairs."""
        paths = [self.folder / name for name in MODELS]
        if not all(path.is_file() for path in paths):
            for path, tokenizer in zip(paths, tokenizers.of(self), strict=True):
                atomic_write(path, tokenizer.model)
        self.tokenizers = [Tokenizer.load(path) for path in paths]
        held_out = self.parts / "held_out.hashes"
        replace_file(held_out, self.held_out.tobytes())
        made = str(held_out), tuple(map(str, paths)), self._dtype
        jobs = (
            (
                TokenizeJob(part, *made),
                sum(os.path.getsize(f"{part}.{side}") for side in _SIDES),
            )
            for name in itertools.chain.from_iterable(self.names["train"])
            for part in [str(self.parts / name)]
        )
        run_part_jobs(
            *("Tokenizing", tokenize_part, jobs, ".ids"),
            *(self.processes, self.beam),
        )

    @property
    def _dtype(self):
        return dtype_of_ids(max(each.vocab_size for each in self.tokenizers))

    def join(self):
        """Writes the ids and the validation pairs of all parts."""
        columns = self.plan["options"].get("columns", ())
        sides = SIDES[: max(len(columns), 2)]
        totals, counts = [0] * len(sides), []
        with contextlib.ExitStack() as files:
            opened = [
                [
                    files.enter_context(
                        open(self.folder / f"{side}.{end}", "wb")
                    )
                    for end in ("values", "offsets")
                ]
                for side in sides
            ]
            for _, offsets in opened:
                offsets.write(np.zeros(1, np.int64).tobytes())
            for names in self.names["train"]:
                counts.append(0)
                for name in names:
                    ids, lengths = part_ids(self.parts / name, self._dtype)
                    counts[-1] += lengths.shape[1]
                    for side, (values, offsets) in enumerate(opened):
                        # Those of an alignment are those of its targets.
                        ends = np.cumsum(lengths[min(side, 1)], dtype=np.int64)
                        offsets.write((ends + totals[side]).tobytes())
                        values.write(ids[side].tobytes())
                        totals[side] += len(ids[side])
        for split in ("validation", "test"):
            self._join_text(split)
        return {
            "counts": counts,
            "arrays": {
                side: {"dtype": dtype, "shape": [total]}
                for side, dtype, total in zip(
                    sides, [self._dtype] * 2 + ["uint16"], totals, strict=False
                )
            },
        }

    def _join_text(self, split):
        end, names = "", self.names.get(split)
        if split == "validation" and not names:
            end, names = ".held_out", self.names["train"]
        if not names:
            return
        for side in _SIDES:
            with open(self.folder / f"{split}.{side}", "wb") as file:
                for name in itertools.chain.from_iterable(names):
                    file.write(
                        (self.parts / f"{name}{end}.{side}").read_bytes()
                    )
