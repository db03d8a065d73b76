"""What the tests of `prepare_documents` and its kin check.

`prepare` is a function of a folder, by default "out", that prepares the data of
a test with options of its own.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from kseq.data import DataError, Tokenizer, prepare_text
from kseq.data.files.prepared_folder import PreparedFolder


def files_of(folder):
    """All but the record."""
    return {
        path.name: path.read_bytes()
        for path in Path(folder).iterdir()
        if path.name != "prepared.json"
    }


def check_same_batches(found, expected):
    for batch, other in zip(found, expected, strict=True):
        for array, known in zip(
            (*batch[0].values(), *batch[1:]),
            (*other[0].values(), *other[1:]),
            strict=True,
        ):
            assert array.dtype == known.dtype
            np.testing.assert_array_equal(array, known)


def check_number_of_processes(prepare):
    prepare("one", processes=1)
    prepare("two", processes=2)
    assert files_of("one") == files_of("two")


def check_it_resumes(monkeypatch, prepare, options_after=lambda steps: {}):
    """It is interrupted before each file that it writes."""
    prepare("whole")
    replace, written = os.replace, []

    def interrupted(source, path):
        if str(path) not in written:
            written.append(str(path))
            raise KeyboardInterrupt
        replace(source, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        for _ in range(500):
            try:
                prepare(**options_after(len(written)))
            except KeyboardInterrupt:
                continue
            break
    assert len(written) > 10
    assert files_of("out") == files_of("whole")


def check_broken_files(open_folder, names):
    """Files of "out" that are truncated or changed."""
    for name in names:
        path = Path("out", name)
        content = path.read_bytes()
        path.write_bytes(content[:-8])
        with pytest.raises(DataError, match=f"out is broken: {name} has"):
            open_folder("out")
        path.write_bytes(content[::-1])
        with pytest.raises(DataError, match=f"content of {name} has changed"):
            PreparedFolder("out").verify()
        path.write_bytes(content)


def check_same_error(read, prepare, *paths):
    with pytest.raises(DataError) as expected:
        read(*paths)
    with pytest.raises(DataError) as found:
        prepare("new", *paths)
    assert str(found.value) == str(expected.value)


def check_others_are_refused(prepare, read, validation, kind):
    """Files, data and tokenizers other than those of "out".

    Returns:
        Its corpus, and the other tokenizer.
    """
    prepare()
    with pytest.raises(DataError, match="prepared from different files"):
        prepare(validation=validation)
    for path in (validation, ""):
        with pytest.raises(DataError, match="validation is part of a prepared"):
            read("out", path)
    Path("a.txt").write_text("A rose is a rose.\n" * 40)
    prepare_text("text", "a.txt", log=False)
    with pytest.raises(DataError, match=f"holds 'text'; expected '{kind}'"):
        read("text")
    corpus = read("out", log=False)
    other = Tokenizer.train(corpus.validation.lines(), 320)
    with pytest.raises(DataError, match="not prepared with the tokenizer"):
        prepare("new", "out", tokenizer=other)
    return corpus, other


def check_columns_are_refused(prepare):
    """Where there are no files with columns."""
    prepare()
    with pytest.raises(DataError, match="columns is part of a prepared"):
        prepare("new", "out", columns=("a", "b"))
    with pytest.raises(DataError, match="columns needs train"):
        prepare("new", None, columns=("a", "b"))
    assert not Path("new").exists()


def check_a_tokenizer_that_is_kept(prepare):
    """It may be the one that was trained for the folder."""
    prepared = prepare()
    again = prepare("again", tokenizer=prepared.tokenizer)
    assert files_of("again") == files_of("out")
    known = files_of("out")
    prepare(tokenizer=prepared.tokenizer, vocab_size=300)
    assert files_of("out") == known
    other = Tokenizer.train(["other text"] * 9, 280)
    with pytest.raises(
        DataError, match="different options: tokenizers was None"
    ):
        prepare(tokenizer=other)
    with pytest.raises(
        DataError, match="different options: vocab_size was None"
    ):
        prepare("again")
    assert again.describe() == prepared.describe()


def check_built_in_corpus(monkeypatch, prepare, module):
    """It is in memory; of few, as it is generated and trained on twice."""
    sizes = {"train": 120, "validation": 20, "test": 20}
    monkeypatch.setattr(f"kseq.data.{module}.SIZES", sizes)
    corpus = prepare("unused", None)
    assert not Path("unused").exists()
    assert prepare("unused", None, tokenizer=corpus.tokenizer) == corpus
