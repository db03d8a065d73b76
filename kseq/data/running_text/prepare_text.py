"""Prepares running text for training: tokenizes it once."""

import functools
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kseq.data.files.blank_text import is_blank
from kseq.data.files.corpora import logged
from kseq.data.files.data_error import DataError
from kseq.data.files.prepare_files import prepare_files
from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.process_jobs import run_part_jobs
from kseq.data.files.ragged_array import dtype_of_ids
from kseq.data.running_text.prepared_text import (
    KIND,
    PreparedText,
    documents_files,
    open_prepared_text,
)
from kseq.data.running_text.running_ids import (
    groups_of,
    ids_of_chunks,
    lines_of,
)
from kseq.data.running_text.text_corpus import (
    TextCorpus,
    read_text_corpus,
    repeated_documents,
    size_of_text,
    trained_characters,
)
from kseq.data.running_text.text_documents import (
    DEFAULT_COLUMN,
    Chunk,
    check_column,
    chunks_of,
    documents_of,
    text_problems,
    texts_and_problems,
)
from kseq.data.text.prepare_rows import (
    kept_or_trained,
    tokenizer_options,
    with_tokenizer,
)
from kseq.data.text.tokenizer import Tokenizer
from kseq.files.atomic_write import atomic_write, replace_file
from kseq.files.json_files import read_json, to_json
from kseq.terminal import escaped_line, progress

PART_SIZE = 2**23  # characters, about; the same for any number of processes


def prepare_text(
    folder: str | os.PathLike,
    train: str | os.PathLike | None = None,
    validation: str | os.PathLike | None = None,
    column: str = DEFAULT_COLUMN,
    *,
    vocab_size: int = 8000,
    tokens: str = "char",
    tokenizer: Tokenizer | None = None,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
    log: bool = True,
    part_size: int = PART_SIZE,
) -> PreparedText | TextCorpus:
    r"""Tokenizes running text once, and writes a folder to train from.

    The text and the held-out part are those of `read_text_corpus`, but the text
    is not held in memory. The same files give the same bytes, whatever the
    number of processes. If the process ends before it has finished, the same
    call resumes; if the folder is complete, it is opened.

    Args:
        folder: where to write. It has the ids of training in a file that is
            read without loading it, the text of validation, and the tokenizer.
        train: path, see `read_text_corpus`; a folder that is prepared already
            is opened, and the built-in text is not written.
        validation: the same, or None.
        column: see `read_text_corpus`.
        vocab_size: see `Tokenizer.train`.
        tokens: its `model_type`.
        tokenizer: by default one is trained. If `train` is a prepared folder,
            it must be the tokenizer of that folder.
        processes: number of processes. By default all cores for large files,
            and this process alone for others.
        beam: see `prepare_pairs`.
        log: whether to log the facts, and the problems as warnings.
        part_size: characters that a process tokenizes together.

    Raises:
        DataError: a file cannot be used, there is a column, but no table, or
            the folder was prepared from different files or with different
            options.
        DiskError: the disk is full.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("poem.txt").write_text("A rose is a rose.\n" * 20)
    >>> prepared = prepare_text("prepared", "poem.txt")
    >>> prepared.ids[:3].tolist(), prepared.tokenizer.vocab_size
    ([2, 10, 4], 14)
    """
    made = tokenizer, vocab_size, tokens, True
    if train is None or is_prepared(train):
        corpus = read_text_corpus(train, validation, column, log=False)
    else:
        check_column(column, train, validation)
        options = {"column": column, "part_size": part_size}
        options |= tokenizer_options(
            tokenizer, vocab_size=vocab_size, tokens=tokens
        )
        given = train, validation
        prepare_files(
            *(folder, KIND, given, options),
            functools.partial(_prepare, given, made, processes, beam),
        )
        corpus = open_prepared_text(folder)
    return logged(with_tokenizer(corpus, KIND, *made), log)


def _prepare(given, made, processes, beam, prepared, options) -> dict[str, Any]:
    """Each step resumes where it was interrupted."""
    train, validation = given
    summary = prepared.parts / "read.json"
    if not summary.is_file():
        read = _read(prepared.parts, train, validation, options)
        replace_file(summary, to_json(read).encode())
    read = read_json(summary)
    parts = [str(prepared.parts / name) for name in read["parts"]]

    model = prepared.path / "source.model"
    if not model.is_file():
        chunks = itertools.chain.from_iterable(map(read_part, parts))
        lines = (line for chunk in chunks for line in lines_of(chunk.text))
        kept, *trained = made
        atomic_write(model, kept_or_trained(kept, lines, *trained).model)
    jobs = (
        (TokenizeTextJob(part, str(model)), os.path.getsize(f"{part}.text"))
        for part in parts
    )
    run_part_jobs(
        *("Tokenizing", tokenize_text_part, jobs, ".ids", processes, beam)
    )

    dtype = dtype_of_ids(Tokenizer.load(model).vocab_size)
    with open(prepared.path / "ids.values", "wb") as file:
        for part in parts:
            file.write(Path(f"{part}.ids").read_bytes())
        count = file.tell() // np.dtype(dtype).itemsize
    for end in documents_files([]):
        held_out = Path(f"{prepared.parts / 'validation'}{end}").read_bytes()
        (prepared.path / f"validation{end}").write_bytes(held_out)
    return {
        "counts": [read["documents"]],
        "facts": read["facts"],
        "problems": read.get("problems", []),  # none in earlier versions
        "arrays": {"ids": {"dtype": dtype, "shape": [count]}},
    }


def _read(folder, train, validation, options) -> dict[str, Any]:
    """Writes the text in parts, and what is held out or for validation."""
    column, size = options["column"], options["part_size"]
    counts = Counter()
    with progress(f"Reading {escaped_line(train)}"):
        chunks = _without_blank(chunks_of(train, column, counts), counts)
        names, characters = _write_parts(folder, chunks, size)
    if not names:
        raise DataError(f"{train} contains no text.")
    problems = text_problems(train, counts)
    if validation is None:
        trained = trained_characters(train, sum(characters))
        names, held_out = _cut(folder, names, characters, trained)
    else:
        trained = sum(characters)
        held_out, more = texts_and_problems(validation, column)
        problems += more
    for end, content in documents_files(held_out).items():
        replace_file(f"{folder / 'validation'}{end}", content)
    documents = sum(int(_rows(folder / name)[:, 1].sum()) for name in names)
    judged = sum(map(len, held_out)), len(held_out)
    facts = [
        size_of_text("Training", trained, documents, train),
        size_of_text("Validation", *judged, validation),
    ]
    kept = map(read_part, (folder / name for name in names))
    return {
        "parts": names,
        "documents": documents,
        "facts": facts,
        "problems": [
            *problems,
            *repeated_documents(itertools.chain.from_iterable(kept), held_out),
        ],
    }


def _without_blank(chunks: Iterable[Chunk], counts: Counter) -> Iterator[Chunk]:
    """Leaves out blank documents, and counts them and the others."""
    blank, begins = "", True
    for chunk in chunks:
        if begins and is_blank(chunk.text):
            blank = "" if chunk.ends else blank + chunk.text
            counts["blank"] += chunk.ends
            continue
        yield Chunk(blank + chunk.text, begins, chunk.ends)
        blank, begins = "", chunk.ends
        counts["documents"] += chunk.ends


def _write_parts(folder, chunks, part_size) -> tuple[list[str], list[int]]:
    names, characters = [], []
    for part in groups_of(chunks, part_size):
        names.append(f"{len(names):06}")
        characters.append(sum(len(chunk.text) for chunk in part))
        _write_part(folder / names[-1], part)
    return names, characters


def _cut(folder, names, characters, trained) -> tuple[list[str], list[str]]:
    """Takes the end of the text from the parts, as documents."""
    first = 0
    while trained >= characters[first]:
        trained -= characters[first]
        first += 1
    parts = (read_part(folder / name) for name in names[first:])
    rest = list(itertools.chain.from_iterable(parts))
    kept = []
    while trained >= len(rest[0].text):
        kept.append(rest.pop(0))
        trained -= len(kept[-1].text)
    if trained:
        chunk = rest[0]
        kept.append(Chunk(chunk.text[:trained], chunk.begins))
        rest[0] = Chunk(chunk.text[trained:], True, chunk.ends)
    names = names[: first + bool(kept)]
    # What precedes ends a document, wherever the text is cut.
    *others, chunk = kept or read_part(folder / names[-1])
    _write_part(folder / names[-1], [*others, chunk._replace(ends=True)])
    return names, list(documents_of(rest))


def _write_part(path, chunks):
    texts = [chunk.text.encode() for chunk in chunks]
    rows = [
        (len(text), chunk.begins, chunk.ends)
        for text, chunk in zip(texts, chunks, strict=True)
    ]
    replace_file(f"{path}.chunks", np.array(rows, np.int64).tobytes())
    replace_file(f"{path}.text", b"".join(texts))


def read_part(path: str | os.PathLike) -> list[Chunk]:
    """The text of a part."""
    chunks = []
    with open(f"{path}.text", "rb") as file:
        for size, begins, ends in _rows(path).tolist():
            text = file.read(size).decode()
            chunks.append(Chunk(text, bool(begins), bool(ends)))
    return chunks


def _rows(path) -> np.ndarray:
    """(N, 3) int64: of each chunk of a part its bytes, `begins` and `ends`."""
    return np.fromfile(f"{path}.chunks", np.int64).reshape(-1, 3)


class TokenizeTextJob(NamedTuple):
    """A part to tokenize.

    Args:
        part: path of its files without their ends.
        model: path of the model of the tokenizer.
    """

    part: str
    model: str


def tokenize_text_part(job: TokenizeTextJob):
    """Writes the ids of a part."""
    tokenizer = Tokenizer.load(job.model)
    dtype = dtype_of_ids(tokenizer.vocab_size)
    ids = [
        found.astype(dtype).tobytes()
        for found, _ in ids_of_chunks(read_part(job.part), tokenizer)
    ]
    replace_file(f"{job.part}.ids", b"".join(ids))
