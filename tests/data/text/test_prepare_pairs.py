import errno
import functools
import gzip
import itertools
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kseq.data import (
    DataError,
    LineFilters,
    PairTokenizers,
    TextPreprocessor,
    Tokenizer,
    dates,
    kept_pairs,
    open_prepared,
    prepare_pairs,
    read_corpus,
    tokenize_pairs,
    training_batches,
)
from kseq.data.files.compressed_files import unreadable
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.data.text.pair_parts import read_pairs, tokenize_part
from kseq.user_error import UserError
from tests.slow import slow

pytestmark = pytest.mark.usefixtures("here")

ODD = [
    b"",
    b" \xe3\x80\x80",
    b"a\0b",
    b"\xe2\x96\x81x",
    b"\xef\xb7\x90\xef\xb7\x91",
    b"c\r",
    b"d\re",
    b"\xff\xc3",
    b"</s> <s> <unk>",
    b"\xc3\r\xa9",
    b"x" * 70_000,
    b" a b  c ",
    b"\xe2\x80\xa8",
]


def pairs(count, start=0):
    return [
        (b"source %d of %d" % (n // 2, n % 7), b"target number %d" % n)
        for n in range(start, start + count)
    ]


def write_files(folder, rows, name="a", write=Path.write_bytes):
    paths = [folder / f"{name}.de", folder / f"{name}.en"]
    for path, side in zip(paths, zip(*rows, strict=True), strict=True):
        path.write_bytes(b"\n".join(side))
    return paths


@pytest.fixture(scope="module")
def tokenizer():
    lines = [text for pair in pairs(50) for text in pair]
    return Tokenizer.train(lines, 290, "bpe")


@pytest.fixture
def kept(tokenizer):
    return PairTokenizers(kept=(tokenizer, tokenizer))


def rows_of(dataset):
    return list(dataset.as_numpy_iterator())


def check_same(prepared, corpus):
    """What is prepared is what is read, and is tokenized on the fly."""
    assert prepared.facts == corpus.facts
    assert prepared.problems == corpus.problems
    assert prepared.of_tables == corpus.of_tables
    assert rows_of(prepared.validation) == rows_of(corpus.validation)
    assert rows_of(prepared.test) == rows_of(corpus.test)
    assert prepared.counts == tuple(len(rows_of(part)) for part in corpus.parts)
    for side, texts, ids, tokenizer in zip(
        (0, 1),
        zip(*rows_of(corpus.train), strict=True),
        (prepared.source, prepared.target),
        prepared.tokenizers,
        strict=True,
    ):
        expected = tokenizer.tokenize_with_end(list(texts))[0]
        found = ids.gather(np.arange(len(ids)))
        assert found.to_list() == expected.to_list(), side


def test_two_files(tmp_path, kept):
    rows = pairs(40) + [(odd, b"t") for odd in ODD] + [(b"s", o) for o in ODD]
    files = write_files(tmp_path, rows + pairs(3))
    prepared = prepare_pairs("out", files, tokenizers=kept, part_size=500)

    check_same(prepared, read_corpus(files, log=False))
    assert prepared.source.values.dtype == np.uint16
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "prepared.json",
        "source.model",
        "source.offsets",
        "source.values",
        "target.model",
        "target.offsets",
        "target.values",
        "validation.source",
        "validation.target",
    ]


def write_table(path, rows):
    match path.suffix:
        case ".tsv":
            path.write_bytes(b"".join(b"%b\t%b\n" % row for row in rows))
        case ".csv":
            lines = "".join(f'"{s.decode()}","{t.decode()}"\n' for s, t in rows)
            path.write_text(f"source,target\n{lines}")
        case ".jsonl":
            objects = (
                {"source": s.decode(), "target": [t.decode(), "two\nlines"]}
                for s, t in rows
            )
            path.write_text("".join(json.dumps(o) + "\n" for o in objects))
        case ".gz":
            path.write_bytes(gzip.compress(b"\n".join(row[0] for row in rows)))
        case ".xz":
            path.write_bytes(lzma.compress(b"\n".join(row[1] for row in rows)))
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_tables(tmp_path, kept, name):
    file = write_table(tmp_path / name, pairs(60))
    other = write_table(tmp_path / "b.tsv", pairs(30, 40))
    train = [file, other]
    prepared = prepare_pairs("out", train, tokenizers=kept, part_size=2000)

    corpus = read_corpus(train, log=False)
    check_same(prepared, corpus)
    assert prepared.examples() == corpus.examples()


def test_validation_files_patterns_and_compressed_ones(tmp_path, kept):
    write_files(tmp_path, pairs(30), "a1")
    (tmp_path / "a1.de").write_bytes(
        b"\xef\xbb\xbf" + (tmp_path / "a1.de").read_bytes() + b"\n"
    )
    write_files(tmp_path, pairs(30, 30), "a2")
    zipped = [
        write_table(tmp_path / f"z.{end}", pairs(20)) for end in ("gz", "xz")
    ]
    train = ["a*.de", "a*.en", *zipped]
    validation = [write_table(tmp_path / "v.tsv", pairs(20, 25))]
    prepared = prepare_pairs(
        "out", train, validation, tokenizers=kept, part_size=300
    )

    check_same(prepared, read_corpus(train, validation, log=False))


@pytest.mark.parametrize("pieces", [("bpe",), ("bpe", "char")])
def test_tokenizers_are_those_of_the_corpus(tmp_path, pieces):
    sides = zip(*dates("train", size=2500), strict=True)
    rows = [tuple(map(str.encode, pair)) for pair in sides]
    files = write_files(tmp_path, rows)
    options = PairTokenizers(800, pieces)
    prepared = prepare_pairs("out", files, tokenizers=options, part_size=99_999)
    expected = options.of(read_corpus(files, log=False))

    for one, other in zip(prepared.tokenizers, expected, strict=True):
        assert one.model == other.model
    one, other = prepared.tokenizers
    assert (one is other) == (len(pieces) == 1)


def test_built_in_dates(kept, monkeypatch):
    few = functools.partial(dates, size=50)
    for module in ("prepare_pairs", "corpus"):
        module = sys.modules[f"kseq.data.text.{module}"]
        monkeypatch.setattr(module, "dates", few)
    prepared = prepare_pairs("out", tokenizers=kept)
    check_same(prepared, read_corpus())


@pytest.mark.slow  # each process imports TensorFlow
def test_number_of_processes_does_not_matter(tmp_path, kept):
    files = write_files(tmp_path, pairs(400) + [(odd, odd) for odd in ODD])
    for folder, processes in (("one", 1), ("two", 2)):
        prepare_pairs(
            folder,
            files,
            tokenizers=kept,
            processes=processes,
            part_size=3000,
        )

    for file in Path("one").iterdir():
        assert file.read_bytes() == Path("two", file.name).read_bytes()


@pytest.mark.slow  # as the one of test_process_jobs.py, with TensorFlow
def test_processes_do_not_run_the_program(tmp_path, kept):
    """It may be the page of a recipe that trains wherever it is imported."""
    write_files(tmp_path, pairs(400))
    Path("page.py").write_text("""
from kseq.data import PairTokenizers, prepare_pairs
print("once")
tokenizers = PairTokenizers(300)
pairs = prepare_pairs("out", ["a.de", "a.en"], tokenizers=tokenizers,
    processes=2, part_size=3000)
print(pairs.counts)
""")
    done = subprocess.run(
        [sys.executable, "page.py"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "once\n(360,)\n"


def noisy(count, start=0):
    """Pairs of which filters leave out some, and some that occur again."""
    rows = pairs(count, start)
    for place in range(0, count, 7):
        rows[place] = rows[place // 2]
    for place in range(3, count, 11):
        rows[place] = (rows[place][0], rows[place][0] + b" ")
    for place in range(5, count, 13):
        rows[place] = (b"a", b"b" * 50)
    rows[8] = (b" " + rows[0][0], rows[0][1] + b"  ")
    return rows


@pytest.mark.parametrize("part_size", [500, 2000, 10**6])
def test_filters(tmp_path, kept, part_size):
    """What stays is what `kept_pairs` keeps of all files in their order."""
    filters = LineFilters(max_characters=60, max_ratio=4.0)
    texts = [noisy(120), noisy(90, 100)]
    files = [
        write_table(tmp_path / "a.tsv", texts[0]),
        write_table(tmp_path / "b.tsv", texts[1]),
    ]
    validation = write_table(tmp_path / "v.tsv", [(b"v", b"w"), (b"a", b"a")])
    prepared = prepare_pairs(
        *("out", files, [validation]),
        tokenizers=kept,
        filters=filters,
        part_size=part_size,
    )

    seen, problems, expected = set(), [], []
    for file, rows in zip(files, texts, strict=True):
        good, counts = kept_pairs(*zip(*rows, strict=True), filters, seen)
        assert counts.keys() == {"length_ratio", "identical", "duplicate"}
        problems.append(
            f"{file}: filters leave out {counts.total()} of {len(rows)} "
            f"pairs: {filters.described(counts)}."
        )
        expected.append(list(itertools.compress(rows, good)))
    assert prepared.counts == tuple(map(len, expected))
    assert [p for p in prepared.problems if "filters" in p] == problems
    assert rows_of(prepared.validation) == [(b"v", b"w"), (b"a", b"a")]
    assert f"Training pairs: {len(expected[0])} ({files[0]})" in prepared.facts
    assert not any("Duplicate" in fact for fact in prepared.facts)
    tokenizer = kept.kept[0]
    ids = prepared.target.gather(np.arange(len(prepared.target))).to_list()
    lines = [target for rows in expected for _, target in rows]
    assert ids == tokenizer.tokenize_with_end(lines)[0].to_list()

    with pytest.raises(DataError, match="different options: filters was"):
        prepare_pairs("out", files, [validation], tokenizers=kept)
    everything = LineFilters(max_characters=1)
    with pytest.raises(DataError, match=r"a\.tsv: filters leave out 120 of 12"):
        prepare_pairs("no", files, tokenizers=kept, filters=everything)


def test_beam_writes_the_same_bytes(tmp_path, kept):
    pytest.importorskip("apache_beam", reason="needs the extra beam")
    files = write_files(tmp_path, pairs(400) + [(odd, odd) for odd in ODD])
    options = ["--direct_running_mode=multi_processing"]
    options += ["--direct_num_workers=2", "--runner=FnApiRunner"]
    for folder, beam in (("one", None), ("two", options)):
        prepare_pairs(folder, files, tokenizers=kept, beam=beam, part_size=3000)

    for file in Path("one").iterdir():
        assert file.read_bytes() == Path("two", file.name).read_bytes()


def test_an_error_in_beam_is_that_of_the_file(tmp_path, kept):
    pytest.importorskip("apache_beam", reason="needs the extra beam")
    given = {"train": ["a.csv"], "columns": ("de", "en"), "tokenizers": kept}
    Path("a.csv").write_text("de,en\nja,yes\nnein\n")
    with pytest.raises(
        DataError, match=r"a.csv:3: expected 2 columns; found 1"
    ):
        prepare_pairs("out", **given, beam=[])
    Path("a.csv").write_text("de,en\nja,yes\nnein,no\n")
    assert prepare_pairs("new", **given, beam=[]).counts == (1,)
    with pytest.raises(UserError, match="Apache Beam pipeline has failed"):
        prepare_pairs("other", **given, beam=["--runner=nothing"])


def test_beam_may_be_missing(tmp_path, kept, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    Path("a.tsv").write_text("ja\tyes\nnein\tno\n")
    with pytest.raises(DataError, match=r"pip install 'kseq\[beam\]'"):
        prepare_pairs("out", ["a.tsv"], tokenizers=kept, beam=[])


def killed(files, kept, monkeypatch):
    """A process of its own, which is killed."""
    Path("tokenizer.model").write_bytes(kept.kept[0].model)
    script = """
import os, signal, sys
from kseq.data import PairTokenizers, Tokenizer, prepare_pairs
from kseq.data.text import prepare_pairs as module
from kseq.data.text.pair_parts import tokenize_part

def tokenize(job):
    if job.part.endswith("3-00000"):
        os.kill(os.getpid(), signal.SIGKILL)
    return tokenize_part(job)

sys.modules["kseq.data.text.prepare_pairs"].tokenize_part = tokenize
tokenizer = Tokenizer.load("tokenizer.model")
prepare_pairs("out", ["a.de", "a.en"], part_size=3000,
    tokenizers=PairTokenizers(kept=(tokenizer, tokenizer)))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL


def interrupted(files, kept, monkeypatch):
    def tokenize(job):
        if job.part.endswith("3-00000"):
            raise KeyboardInterrupt
        return tokenize_part(job)

    with monkeypatch.context() as patch:
        module = sys.modules["kseq.data.text.prepare_pairs"]
        patch.setattr(module, "tokenize_part", tokenize)
        with pytest.raises(KeyboardInterrupt):
            prepare_pairs("out", files, tokenizers=kept, part_size=3000)


# A process that imports TensorFlow takes seconds.
@pytest.mark.parametrize("end", [interrupted, slow(killed)])
def test_a_killed_process_resumes(tmp_path, kept, monkeypatch, end):
    files = write_files(tmp_path, pairs(400))
    end(files, kept, monkeypatch)
    with pytest.raises(DataError, match="not complete: start the same"):
        open_prepared("out")
    parts = sorted(Path("out/parts").glob("*.ids"))
    assert len(parts) == 3
    times = [path.stat().st_mtime_ns for path in parts]
    seen = []

    def times_at_the_end(prepared):
        seen.extend(path.stat().st_mtime_ns for path in parts)

    monkeypatch.setattr(PreparedFolder, "remove_parts", times_at_the_end)
    # The size of the parts is the one that the first process had.
    resumed = prepare_pairs("out", files, tokenizers=kept)
    assert seen == times
    check_same(resumed, read_corpus(files, log=False))
    prepare_pairs("whole", files, tokenizers=kept)
    records = [Path(each, "prepared.json") for each in ("out", "whole")]
    assert records[0].read_bytes() == records[1].read_bytes()
    prepare_pairs("out", files, tokenizers=kept, part_size=9)  # only opened


@pytest.mark.parametrize("finished", [0, 2])
def test_a_file_that_cannot_be_read_now(tmp_path, kept, monkeypatch, finished):
    files = write_files(tmp_path, pairs(400))
    parts = []

    def read(job):
        parts.append(job.part)
        if len(parts) == finished + 1:
            raise unreadable("a.de", OSError(errno.EIO, "Input/output error"))
        return read_pairs(job)

    module = sys.modules["kseq.data.text.prepare_pairs"]
    monkeypatch.setattr(module, "read_pairs", read)
    message = r"^Cannot read a\.de: Input/output error\."
    kept_too = " What is finished is kept: the same command resumes."
    with pytest.raises(
        DataError, match=message + kept_too * bool(finished) + "$"
    ):
        prepare_pairs("out", files, tokenizers=kept, part_size=3000)
    assert Path("out").exists() == bool(finished)

    prepare_pairs("out", files, tokenizers=kept, part_size=3000)
    assert len(parts) == len({*parts}) + 1


def test_wrong_options_leave_nothing(tmp_path):
    files = write_files(tmp_path, pairs(40))
    with pytest.raises(DataError, match="need at least"):
        prepare_pairs("out", files, tokenizers=PairTokenizers(261))
    assert not (tmp_path / "out").exists()


def test_changed_files_and_options(tmp_path, kept):
    files = write_files(tmp_path, pairs(40))
    prepare_pairs("out", files, tokenizers=kept)
    before = os.stat("out/prepared.json")
    moved = [path.rename(path.with_stem("b")) for path in files]
    prepare_pairs("out", moved, tokenizers=kept)
    assert os.stat("out/prepared.json") == before

    with pytest.raises(DataError, match="different options: tokenizers was"):
        prepare_pairs("out", moved, tokenizers=PairTokenizers(300))
    with pytest.raises(DataError, match="from different files"):
        prepare_pairs("out", moved + moved, tokenizers=kept)
    text = moved[0].read_bytes()
    time.sleep(0.01)
    moved[0].write_bytes(text.replace(b"1", b"2"))
    with pytest.raises(DataError, match=r"b\.de is not the file that out"):
        prepare_pairs("out", moved, tokenizers=kept)


def test_a_prepared_folder_is_opened(tmp_path, kept):
    files = write_files(tmp_path, pairs(40))
    prepared = prepare_pairs("out", files, tokenizers=kept)
    again = prepare_pairs("unused", ["out"])
    assert again.counts == prepared.counts
    assert not Path("unused").exists()
    with pytest.raises(DataError, match="validation is part of a prepared"):
        prepare_pairs("unused", "out", files)
    with pytest.raises(DataError, match="filters is part of a prepared"):
        prepare_pairs("unused", "out", filters=LineFilters())


def test_broken_folders(tmp_path, kept):
    files = write_files(tmp_path, pairs(40))
    prepare_pairs("out", files, tokenizers=kept)
    record = Path("out/prepared.json")
    content = json.loads(record.read_text())

    for key, value, message in (
        ("format", 2, "a different version of kseq"),
        ("kind", "tags", "holds 'tags'; expected 'pairs'"),
        ("files", None, "is broken"),
        ("arrays", {}, "is broken"),
        ("counts", [40], "out is broken: its files do not match"),
        ("counts", [10**30], "out is broken"),
        ("counts", ["a"], "out is broken"),
        ("counts", [], "out is broken"),
    ):
        record.write_text(json.dumps({**content, key: value}))
        with pytest.raises(DataError, match=message):
            open_prepared("out")
    record.write_text(json.dumps(content))

    values = Path("out/source.values").read_bytes()
    Path("out/source.values").write_bytes(values[::-1])
    open_prepared("out")
    with pytest.raises(DataError, match=r"content of source\.values has"):
        PreparedFolder("out").verify()
    Path("out/source.values").write_bytes(values[:-2])
    with pytest.raises(DataError, match=r"source\.values has .* bytes; exp"):
        open_prepared("out")
    Path("out/source.values").unlink()
    with pytest.raises(DataError, match="missing"):
        open_prepared("out")
    with pytest.raises(DataError, match="is not prepared data: it has no"):
        open_prepared(tmp_path)


@pytest.mark.parametrize(
    ("sources", "targets"),
    [
        (b"a\nb", b"a"),
        (b"a\nb", b"a\nb\nc"),
        (b"", b"a"),
        (b"\n\n", b"a\n\n"),
        (b"a\na\na", b"x\ny\nz"),
        (b"a\rb", b"x"),
        (b"\xff\xfea\0", b"x"),
    ],
)
def test_errors_are_those_of_read_corpus(tmp_path, kept, sources, targets):
    files = write_files(tmp_path, [(sources, targets)])
    with pytest.raises(DataError) as expected:
        read_corpus(files)
    with pytest.raises(DataError) as found:
        prepare_pairs("out", files, tokenizers=kept)
    assert str(found.value) == str(expected.value)


def test_a_foreign_folder_is_refused(tmp_path, kept):
    files = write_files(tmp_path, pairs(40))
    with pytest.raises(DataError, match=r"not prepared data: it holds a\.de"):
        prepare_pairs(tmp_path, files, tokenizers=kept)


def test_training_from_a_folder_is_that_from_files(tmp_path, kept):
    files = write_files(tmp_path, pairs(60))
    prepare_pairs("out", files, tokenizers=kept, part_size=500)

    def batches(tokenized):
        found = training_batches(
            tokenized, batch_tokens=64, max_length=40, seed=1
        )
        return [
            (inputs["source_ids"].numpy().tolist(), labels.numpy().tolist())
            for inputs, labels, _ in found.take(20)
        ]

    folder = read_corpus(["out"], log=False)
    corpus = read_corpus(files, log=False)
    assert folder.describe() == corpus.describe()
    source, target = kept.kept
    preprocessor = TextPreprocessor(source)
    assert batches(folder.tokenized(preprocessor)) == batches(
        tokenize_pairs([*corpus.parts], preprocessor, target)
    )


def test_a_folder_has_its_columns_and_tokenizers(tmp_path, kept):
    files = write_files(tmp_path, pairs(30))
    prepare_pairs("out", files, tokenizers=kept)
    for given in ({"columns": ("a", "b")}, {"validation": files}):
        with pytest.raises(DataError, match="part of a prepared folder"):
            read_corpus(["out"], **given)
    for paths in (["out"], files):
        for read in (read_corpus, functools.partial(prepare_pairs, "out")):
            given = {"weights": (2,), "log": False}
            if read is not read_corpus:
                given["tokenizers"] = kept
            assert read(paths, **given).weights == (1,)
            with pytest.raises(DataError, match="above 0 for each corpus"):
                read(paths, **given | {"weights": (1, 2)})

    other = Tokenizer.train(["other words than those"] * 9, 275)
    others = PairTokenizers(kept=(other, other))
    with pytest.raises(DataError, match="not prepared with the tokenizers"):
        prepare_pairs("new", ["out"], tokenizers=others, log=False)
    assert not Path("new").exists()
