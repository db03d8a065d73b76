import importlib
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from kseq.data import (
    DataError,
    DialoguePreprocessor,
    Tokenizer,
    open_prepared_dialogues,
    prepare_dialogues,
    prepare_text,
    read_dialogue_corpus,
    training_batches,
)
from kseq.data.dialogues.small_talk import small_talk
from tests.data.kept_tokenizer import check_a_tokenizer_that_is_kept
from tests.slow import others_slow

MODELS = {  # arguments of the preprocessor
    "single": {"max_turns": 1, "max_pieces": 60},
    "joined": {"max_turns": 5, "max_pieces": 9},
    "hierarchical": {"max_turns": 3, "max_pieces": 12, "nested": True},
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    talk = small_talk("train", size=60)
    dialogues = [
        [*context, answer]
        for context, answer in zip(talk.contexts, talk.answers, strict=True)
    ]
    odd = (
        "\ufeffWho\u3000is it? ",
        "x\x07y \x1c z\u200b",
        "\u200b",
        "日本\x0b東京",
    )
    dialogues += [dialogues[7], list(odd), ["alone"], ["w " * 40] * 9]
    dialogues.append([*["y " * 30_000] * 3, "Yes."])  # together over 64 KiB
    records = [json.dumps({"turns": turns}) for turns in dialogues]
    Path("a.jsonl").write_text("\n".join(records))
    texts = ["\n".join(turns) + "\n\n" for turns in dialogues[:12]]
    Path("b.txt").write_text("".join(texts[5:9]))


def prepare(folder="out", train="a.jsonl", validation=None, **options):
    options = {"vocab_size": 330, "part_size": 4000, "log": False, **options}
    return prepare_dialogues(folder, train, validation, **options)


def tokenized(corpus, **arguments):
    tokenizer = corpus.tokenizer or Tokenizer.train(corpus.lines(), 330)
    preprocessor = DialoguePreprocessor(tokenizer, **arguments)
    return corpus.tokenized(preprocessor)


@pytest.mark.parametrize("validation", [None, "b.txt"])
def test_it_is_what_is_read(validation):
    prepare(validation=validation)
    for max_turns in (1, 5):
        corpus, prepared = (
            read_dialogue_corpus(*paths, max_turns=max_turns, log=False)
            for paths in (("a.jsonl", validation), ("out",))
        )
        assert prepared.describe() == corpus.describe()
        assert len(corpus.problems) == (3 if validation else 2)
        assert prepared.validation == corpus.validation == prepared.test

    preprocessor = {"max_turns": 3, "max_pieces": 9}
    pairs, others = (
        tokenized(each, **preprocessor) for each in (prepared, corpus)
    )
    assert pairs.preprocessor.tokenizer.model == (
        others.preprocessor.tokenizer.model
    )
    assert isinstance(prepared.ids.values.values, np.memmap)
    assert isinstance(prepared.answers, np.memmap)
    assert pairs.counts == others.counts
    for side, other in (
        (pairs.source, others.source),
        (pairs.target, others.target),
    ):
        numbers = np.arange(len(other))
        rows = side.gather(numbers)
        assert rows.to_list() == other.gather(numbers).to_list()
        assert len(side) == len(other)
        assert (
            rows.row_lengths().numpy().tolist()
            == np.concatenate(list(side.blocks_of_lengths())).tolist()
        )


# That the ids are the same, the test above shows of each.
@pytest.mark.parametrize("name", others_slow(MODELS, ["hierarchical"]))
def test_batches_are_those_of_a_run_from_the_files(name):
    preprocessor = MODELS[name]
    corpora = (
        prepare(),
        read_dialogue_corpus(
            "a.jsonl", max_turns=preprocessor["max_turns"], log=False
        ),
    )
    pairs = [tokenized(corpus, **preprocessor) for corpus in corpora]
    assert pairs[0].longest_target(40) == pairs[1].longest_target(40)
    streams = [
        training_batches(
            each, batch_tokens=300, max_length=60, seed=3, max_shapes=2
        )
        for each in pairs
    ]
    streams = [stream.take(10).as_numpy_iterator() for stream in streams]
    for batch, other in itertools.zip_longest(*streams):
        for array, known in zip(
            (*batch[0].values(), *batch[1:]),
            (*other[0].values(), *other[1:]),
            strict=True,
        ):
            assert array.dtype == known.dtype
            np.testing.assert_array_equal(array, known)


def files_of(folder):
    return {
        path.name: path.read_bytes()
        for path in Path(folder).iterdir()
        if path.name != "prepared.json"
    }


@pytest.mark.slow
def test_number_of_processes_does_not_matter():
    prepare("one", processes=1)
    prepare("two", processes=2)
    assert files_of("one") == files_of("two")


def test_it_resumes_where_it_was_interrupted(monkeypatch):
    prepare("whole")
    replace, written = os.replace, []

    def interrupted(source, path):
        if str(path) not in written:
            written.append(str(path))
            raise KeyboardInterrupt
        replace(source, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        for _ in range(100):
            try:
                prepare()
            except KeyboardInterrupt:
                continue
            break
    assert len(written) > 10
    assert files_of("out") == files_of("whole")


def test_other_options_and_files_are_refused():
    prepare()
    with pytest.raises(DataError, match="vocab_size is 330, now 320"):
        prepare(vocab_size=320)
    with pytest.raises(DataError, match="prepared from other files"):
        prepare(validation="b.txt")
    with pytest.raises(DataError, match="validation is part of a prepared"):
        read_dialogue_corpus("out", "b.txt")
    with pytest.raises(DataError, match="validation is part of a prepared"):
        read_dialogue_corpus("out", "")
    Path("a.txt").write_text("A rose is a rose.\n" * 40)
    prepare_text("text", "a.txt", log=False)
    with pytest.raises(DataError, match="holds 'text'; expected 'dialogues'"):
        read_dialogue_corpus("text")
    corpus = read_dialogue_corpus("out", log=False)
    other = Tokenizer.train(corpus.validation.lines(), 320)
    with pytest.raises(DataError, match="with another tokenizer"):
        prepare("new", "out", tokenizer=other)
    with pytest.raises(DataError, match="with another tokenizer"):
        corpus.tokenized(DialoguePreprocessor(other))
    with pytest.raises(DataError, match="do not have the text of training"):
        corpus.train.lines()


def test_a_truncated_file_is_an_error():
    prepare()
    for name in ("ids.values", "ids.offsets", "ids.rows", "answers.values"):
        content = Path("out", name).read_bytes()
        Path("out", name).write_bytes(content[:-8])
        with pytest.raises(DataError, match=f"out is broken: {name} has"):
            open_prepared_dialogues("out")
        Path("out", name).write_bytes(content)


def test_errors_are_those_of_reading():
    for content in ("a\n", " \n", "a\nb\n", "a\nb\n\na\nb\n"):
        Path("c.txt").write_text(content)
        with pytest.raises(DataError) as expected:
            read_dialogue_corpus("c.txt")
        with pytest.raises(DataError) as found:
            prepare("new", "c.txt")
        assert str(found.value) == str(expected.value)


def test_a_tokenizer_that_is_kept():
    check_a_tokenizer_that_is_kept(prepare, files_of)


def test_the_built_in_corpus_is_in_memory(monkeypatch):
    # Of few: it is generated and trained on twice.
    module = importlib.import_module("kseq.data.dialogues.small_talk")
    sizes = {"train": 120, "validation": 20, "test": 20}
    monkeypatch.setattr(module, "SIZES", sizes)
    corpus = prepare("unused", None)
    assert not Path("unused").exists()
    assert prepare("unused", None, tokenizer=corpus.tokenizer) == corpus
