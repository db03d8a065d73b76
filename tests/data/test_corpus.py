import pytest

from kseq.data import DataError, read_corpus


def strings(dataset):
    return list(dataset.as_numpy_iterator())


def test_every_kth_pair_is_held_out(write):
    lines = [b"s%d\tt%d" % (number, number) for number in range(40)]

    corpus = read_corpus([write("a.tsv", b"\n".join(lines))])

    held_out = [(b"s%d" % line, b"t%d" % line) for line in (0, 10, 20, 30)]
    assert strings(corpus.validation) == strings(corpus.test) == held_out
    assert len(strings(corpus.train)) == 36
    assert not set(strings(corpus.train)) & set(held_out)


def test_lines_are_those_of_the_training_pairs(write):
    corpus = read_corpus(
        [write("de", b"ja\nnein\n"), write("en", b"yes\nno\n")],
        validation=[write("v.tsv", b"gut\tgood\n")],
    )

    assert list(corpus.lines()) == [b"ja", b"nein", b"yes", b"no"]
    assert strings(corpus.validation) == [(b"gut", b"good")]


def test_validation_text_in_train_is_warned_of(write, caplog):
    table = write("a.tsv", b"ja\tyes\nnein\tno\n")

    read_corpus([table], [table])

    assert "2 of 2 sources" in caplog.text


def test_files_are_checked(write):
    one, two = write("one", b"1\n"), write("two", b"1\n2\n")

    with pytest.raises(DataError, match="same number of lines"):
        read_corpus([one, two])
    with pytest.raises(DataError, match="same number of lines"):
        read_corpus([one, one], [one, two])
    with pytest.raises(DataError, match="train takes a source and a target"):
        read_corpus([one, one, one])


def test_without_files_it_is_the_dates():
    corpus = read_corpus()

    source, target = next(corpus.test.as_numpy_iterator())
    assert source.decode()
    assert len(target) == len(b"2024-03-05")
