"""Rows of a corpus: written in parts, and tokenized by any process."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.hold_out import RowReader
from kseq.data.files.prepare_files import prepare_files
from kseq.data.files.process_jobs import run_part_jobs
from kseq.data.files.ragged_array import dtype_of_ids
from kseq.data.files.row_parts import RowParts, read_rows, write_rows
from kseq.data.text.pair_tokenizers import kept_tokenizers
from kseq.data.text.tokenizer import Tokenizer
from kseq.files.atomic_write import atomic_write, replace_file
from kseq.files.json_files import read_json, to_json

_TOKENIZED = 256  # rows that are tokenized together
_ENDS = ("values", "offsets", "rows")  # of the files of a nested array


class TokenizeRowsJob(NamedTuple):
    """A part to tokenize.

    Args:
        part: path of its files without their ends.
        start: the number of its first row.
        held_out: path of the sorted numbers of rows that are held out.
        model: path of the model of the tokenizer.
        tokenize: function of rows and the tokenizer, whose result is ragged
            ids (B, None, None).
    """

    part: str
    start: int
    held_out: str
    model: str
    tokenize: Callable

    def rows(self) -> tuple[list[Any], list[Any]]:
        """The rows to train on, and those that are held out."""
        held_out = {*np.fromfile(self.held_out, np.int64).tolist()}
        kept, held = [], []
        for number, row in enumerate(read_rows(f"{self.part}.jsonl")):
            is_out = self.start + number in held_out
            (held if is_out else kept).append(row)
        return kept, held


def prepare_rows(
    folder: str | os.PathLike,
    kind: str,
    paths: tuple[str | os.PathLike, str | os.PathLike | None],
    options: dict[str, Any],
    reader: RowReader,
    record: Callable[..., dict[str, Any]],
    lines: Callable[[Any], Iterable[str]],
    tokenize: Callable[..., tf.RaggedTensor],
    vocab_size: int,
    kept: Tokenizer | None,
    processes: int | None,
    beam: Sequence[str] | None,
):
    """Reads rows, trains a tokenizer, and writes the ids of the rows.

    Each step resumes where it was interrupted.

    Args:
        folder: see `prepare_files`.
        kind: see `prepare_files`.
        paths: see `prepare_files`.
        options: see `prepare_files`.
        reader: of the rows.
        record: function of a folder for parts, the `Rows` of training, their
            `RowParts`, and `RowSplit`; returns what is recorded of the kind,
            and writes in the folder above what it has beside ids.
        lines: function of a row, its text for the tokenizer.
        tokenize: function of rows, the tokenizer and, as `record`, of what is
            recorded; gives ragged ids (B, None, None), and can be pickled.
        vocab_size: see `Tokenizer.train`.
        kept: the tokenizer, if none is trained.
        processes: see `prepare_pairs`.
        beam: see `prepare_pairs`.

    Raises:
        DataError: see `prepare_files`.
    """

    def prepare(prepared, options):
        return _prepare(
            prepared,
            functools.partial(_read, reader, record, *paths, options),
            *(lines, tokenize, vocab_size, kept, processes, beam),
        )

    options |= tokenizer_options(kept, vocab_size=vocab_size)
    prepare_files(folder, kind, paths, options, prepare)


def tokenizer_options(kept: Tokenizer | None, **trained) -> dict[str, Any]:
    """What a tokenizer depends on beside the text, for JSON.

    If none is kept, on arguments of `Tokenizer.train`.
    """
    return trained if kept is None else {"tokenizers": kept_tokenizers([kept])}


def kept_or_trained(
    kept: Tokenizer | None, lines: Iterable[str], *arguments
) -> Tokenizer:
    """A tokenizer; lines are read to train it, or to warn of characters.

    If none is kept, the arguments are those of `Tokenizer.train`.
    """
    if kept is None:
        return Tokenizer.train(lines, *arguments)
    kept.report_unknown(lines)
    return kept


def with_tokenizer(corpus, kind: str, kept: Tokenizer | None, *arguments):
    """A corpus with its tokenizer, see `kept_or_trained`.

    Raises:
        DataError: the corpus is prepared with another tokenizer.
    """
    if corpus.tokenizer is None:
        made = kept_or_trained(kept, corpus.lines(), *arguments)
        return corpus._replace(tokenizer=made)
    if kept is not None and kept.model != corpus.tokenizer.model:
        refuse_tokenizer(kind)
    return corpus


def refuse_other_ids(kind: str, preprocessor, own):
    """Raises DataError unless a preprocessor gives the ids of `own`."""
    if (
        preprocessor.tokenizer.model != own.tokenizer.model
        or preprocessor.get_config() != own.get_config()
    ):
        refuse_tokenizer(kind)


def refuse_tokenizer(kind: str):
    """Raises DataError: prepared data have ids of another tokenizer."""
    if kind == "text":
        raise DataError(
            "The text was not prepared with the tokenizer of the run."
        )
    raise DataError(
        f"The {kind} were not prepared with the tokenizer of the run to start "
        "from: train with --new-tokenizer."
    )


def _read(reader, record, train, validation, options, folder):
    """Writes the rows of training, and which of them are held out."""
    parts, others = RowParts(folder, options["part_size"]), None
    rows = reader.read(train, parts.add)
    parts.write()
    reader.check(rows, parts.rows())
    if validation is not None:
        held_out = []
        others = reader.read(validation, held_out.append)
        write_rows(folder / "validation.jsonl", held_out)
    split = reader.split(rows, others)
    replace_file(folder / "held_out", split.held_out.tobytes())
    return {
        "starts": parts.starts,
        **record(folder, rows, parts, split),
        "facts": split.facts,
        "problems": split.problems,
    }


def _prepare(
    prepared, read, lines, tokenize, vocab_size, kept, processes, beam
):
    summary = prepared.parts / "read.json"
    if not summary.is_file():
        replace_file(summary, to_json(read(prepared.parts)).encode())
    record = read_json(summary)
    starts = record.pop("starts")
    model = str(prepared.path / "source.model")
    held_out = str(prepared.parts / "held_out")
    jobs = [
        TokenizeRowsJob(
            str(prepared.parts / f"{number:06}"),
            *(start, held_out, model),
            functools.partial(tokenize, record=record),
        )
        for number, start in enumerate(starts[:-1])
    ]
    if not os.path.isfile(model):
        text = (
            line for job in jobs for row in job.rows()[0] for line in lines(row)
        )
        made = kept_or_trained(kept, text, vocab_size)
        atomic_write(Path(model), made.model)
    sized = ((job, os.path.getsize(f"{job.part}.jsonl")) for job in jobs)
    run_part_jobs(
        *("Tokenizing", tokenize_rows, sized, ".held_out", processes, beam)
    )
    rows, count = _join(prepared, jobs)
    dtype = dtype_of_ids(Tokenizer.load(model).vocab_size)
    arrays = {"ids": {"dtype": dtype, "shape": [count]}}
    return {"counts": [rows], "arrays": arrays, **record}


def tokenize_rows(job: TokenizeRowsJob):
    """Writes the ids of a part, and last its rows that are held out."""
    tokenizer = Tokenizer.load(job.model)
    rows, held_out = job.rows()
    ids = [
        job.tokenize(rows[start : start + _TOKENIZED], tokenizer)
        for start in range(0, max(len(rows), 1), _TOKENIZED)
    ]
    ids = tf.concat(ids, axis=0)
    for end, array, dtype in (
        ("values", ids.flat_values, dtype_of_ids(tokenizer.vocab_size)),
        ("offsets", ids.values.row_lengths(), np.int64),
        ("rows", ids.row_lengths(), np.int64),
    ):
        content = array.numpy().astype(dtype).tobytes()
        replace_file(f"{job.part}.{end}", content)
    write_rows(f"{job.part}.held_out", held_out)


def _join(prepared, jobs):
    """Writes all ids and the rows to validate on; counts rows and ids."""
    with contextlib.ExitStack() as files:
        values, *others = (
            files.enter_context(open(prepared.path / f"ids.{end}", "wb"))
            for end in _ENDS
        )
        totals = [0, 0]
        for offsets in others:
            offsets.write(np.zeros(1, np.int64).tobytes())
        for job in jobs:
            values.write(Path(f"{job.part}.values").read_bytes())
            for number, end in enumerate(_ENDS[1:]):
                lengths = np.fromfile(f"{job.part}.{end}", np.int64)
                ends = totals[number] + np.cumsum(lengths)
                others[number].write(ends.tobytes())
                totals[number] += int(lengths.sum())
        rows = others[1].tell() // 8 - 1
    given = prepared.parts / "validation.jsonl"
    parts = [Path(f"{job.part}.held_out") for job in jobs]
    with open(prepared.path / "validation.jsonl", "wb") as file:
        for path in [given] if given.is_file() else parts:
            file.write(path.read_bytes())
    return rows, totals[0]
