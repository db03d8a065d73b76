import json
from pathlib import Path

import numpy as np
import pytest

from kseq.data import (
    DataError,
    DialoguePreprocessor,
    Tokenizer,
    open_prepared_dialogues,
    prepare_dialogues,
    read_dialogue_corpus,
    training_batches,
)
from kseq.data.dialogues.small_talk import small_talk
from tests.data.prepare_checks import (
    check_a_tokenizer_that_is_kept,
    check_broken_files,
    check_built_in_corpus,
    check_it_resumes,
    check_number_of_processes,
    check_others_are_refused,
    check_same_batches,
    check_same_error,
)
from tests.slow import others_slow

MODELS = {  # arguments of the preprocessor
    "single": {"max_turns": 1, "max_pieces": 60},
    "joined": {"max_turns": 5, "max_pieces": 9},
    "hierarchical": {"max_turns": 3, "max_pieces": 12, "nested": True},
}


@pytest.fixture(autouse=True)
def files(here):
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
    check_same_batches(*streams)


@pytest.mark.slow
def test_number_of_processes_does_not_matter():
    check_number_of_processes(prepare)


def test_it_resumes_where_it_was_interrupted(monkeypatch):
    check_it_resumes(monkeypatch, prepare)


def test_other_options_and_files_are_refused():
    corpus, other = check_others_are_refused(
        prepare, read_dialogue_corpus, "b.txt", "dialogues"
    )
    with pytest.raises(DataError, match="vocab_size was 330, now 320"):
        prepare(vocab_size=320)
    with pytest.raises(DataError, match="not prepared with the tokenizer"):
        corpus.tokenized(DialoguePreprocessor(other))
    with pytest.raises(DataError, match="do not contain the training texts"):
        corpus.train.lines()


def test_a_truncated_or_changed_file_is_an_error():
    prepare()
    names = "ids.values", "ids.offsets", "ids.rows", "answers.values"
    check_broken_files(open_prepared_dialogues, names)


def test_errors_are_those_of_reading():
    for content in ("a\n", " \n", "a\nb\n", "a\nb\n\na\nb\n"):
        Path("c.txt").write_text(content)
        check_same_error(read_dialogue_corpus, prepare, "c.txt")


def test_a_tokenizer_that_is_kept():
    check_a_tokenizer_that_is_kept(prepare)


def test_the_built_in_corpus_is_in_memory(monkeypatch):
    check_built_in_corpus(monkeypatch, prepare, "dialogues.small_talk")
