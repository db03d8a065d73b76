import pytest

from kseq.data import DataError, prepare_tags, read_tagging_corpus
from kseq.data.tags.journeys import SIZES

TAGS = ("O", "X", "Y")


@pytest.fixture
def file(tmp_path):
    """Writes sentences of one word; gives the path."""

    def file(name, *rows):
        path = tmp_path / name
        path.write_text("".join(f"{word}\t{tag}\n\n" for word, tag in rows))
        return path

    return file


def numbered(count, tags=TAGS):
    return [(f"w{n}", tags[n % len(tags)]) for n in range(count)]


def test_the_built_in_corpus():
    corpus = read_tagging_corpus()
    assert [len(split.texts) for split in corpus[:3]] == [*SIZES.values()]
    assert corpus.tags == tuple(sorted(corpus.tags))
    assert {"B-from", "I-to", "O"} <= {*corpus.tags}


def test_a_tenth_is_held_out(file):
    """Equal sentences stay together; the same ones each time."""
    rows = [*numbered(50), *numbered(50)]
    path = file("train.conll", *rows)
    corpus = read_tagging_corpus(path, log=False)
    assert corpus.test is corpus.validation
    assert len(corpus.validation.texts) == 10
    assert not {*corpus.train.texts} & {*corpus.validation.texts}
    assert len(corpus.train.texts) == 90
    assert corpus == read_tagging_corpus(path, log=False)
    assert corpus.tags == TAGS
    assert corpus.describe() == [
        f"Training sentences: 90, 90 words ({path})",
        "Validation sentences: 10, 10 words (held out of training)",
        "Tags: 3",
    ]


def test_a_file_for_validation(file):
    train = file("train.conll", *numbered(9))
    other = file("val.conll", ("w1", "X"), ("new", "O"))
    corpus = read_tagging_corpus(train, other, log=False)
    assert len(corpus.train.texts) == 9
    assert corpus.validation.texts == ["w1", "new"]
    assert corpus.problems == (
        "1 of 2 validation sentences are also in training: scores on them "
        "will be too high.",
    )


def test_a_tag_of_one_word_is_named(tmp_path):
    """Such as the name of a column that was not told from a tag."""
    path = tmp_path / "train.csv"
    path.write_text("tokens,ner_tags\n" + "a b c,O X O\nd e,O X\n" * 10)
    problem = (
        f"{path}: tags that occur only once: 'ner_tags'. If one is a column "
        "name, name the columns with --columns, or delete its row."
    )
    for validation in (None, path):
        corpus = read_tagging_corpus(path, validation, log=False)
        assert corpus.problems[-1] == problem
    prepared = prepare_tags(tmp_path / "out", path, vocab_size=270, log=False)
    assert prepared.problems == (problem,)
    columns = ("tokens", "ner_tags")
    assert not read_tagging_corpus(path, columns=columns, log=False).problems
    path.write_text(path.read_text().partition("\n")[2])
    assert not read_tagging_corpus(path, log=False).problems


def test_tags_that_training_does_not_have(file):
    train = file("train.conll", *numbered(9))
    other = file("val.conll", ("w1", "Z"), ("w2", "O"))
    with pytest.raises(DataError, match=f"{other} has tags that .*: 'Z'"):
        read_tagging_corpus(train, other)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "X"), ("b", "X")], "two tags or more; found 'X' alone"),
        ([("a", "X"), ("a", "Y")], "no sentence can be held out"),
        ([("a", f"T{n}") for n in range(30)], "30 different tags and only 1"),
    ],
)
def test_files_that_cannot_be_used(file, rows, message):
    with pytest.raises(DataError, match=message):
        read_tagging_corpus(file("train.conll", *rows))


def test_validation_needs_train(file):
    with pytest.raises(DataError, match="validation needs train"):
        read_tagging_corpus(None, file("val.conll", ("a", "X")))
