import pytest

from kseq.data import DataError
from kseq.evaluation import evaluation_of_files
from kseq.user_error import UserError


@pytest.fixture
def file(tmp_path):
    """Writes a file; gives its path."""

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_translations(translator, file):
    source, reference = (
        file("source", "a\nb\n\n"),
        file("reference", "A\nc\n\n"),
    )
    translations = evaluation_of_files(translator, source, reference)
    assert translations.scores()["exact_match"] == pytest.approx(2 / 3)
    assert translations.rows(2) == [("a", "A", "A"), ("b", "c", "B")]


def test_a_very_long_line_is_left_out_of_the_scores(translator, file, caplog):
    long = "x" * 65_537
    source = file("source", f"a\n{long}\n\nb\n{long}\n")
    reference = file("reference", f"A\nX\n\n{long}\n\n")
    translations = evaluation_of_files(translator, source, reference)
    assert translations.scores()["exact_match"] == 1
    assert translations.rows(9) == [("a", "A", "A"), ("", "", "")]
    [message] = caplog.messages
    assert "3 of 5 pairs are left out of the scores" in message

    longest = file("longest", f"{long}\n")
    with pytest.raises(DataError, match="no pair to evaluate on; 1 of 1"):
        evaluation_of_files(translator, longest, longest)


def test_classifications(classifier, file):
    table = file("table.tsv", "fire\tsmoke\nflood\twater\nflood\tsmoke\n")
    found = evaluation_of_files(classifier, table)
    assert found.scores()["accuracy"] == pytest.approx(2 / 3)
    assert found.rows(1) == [("smoke", "fire", "fire")]

    named = file("named.tsv", "id\tkind\tbody\n1\tfire\tsmoke\n")
    found = evaluation_of_files(classifier, named, columns=("kind", "body"))
    assert found.scores()["accuracy"] == 1


def test_files_of_the_other_task(translator, classifier, file):
    table = file("table.tsv", "fire\tsmoke\n")
    with pytest.raises(UserError, match="needs SOURCE and REFERENCE"):
        evaluation_of_files(translator, table)
    with pytest.raises(UserError, match="needs one file of labels and"):
        evaluation_of_files(classifier, table, table)


def test_files_that_cannot_be_used(translator, classifier, file, tmp_path):
    one, two = file("one", "a\n"), file("two", "a\nb\n")
    with pytest.raises(DataError, match="has 1"):
        evaluation_of_files(translator, one, two)
    with pytest.raises(DataError, match="no file"):
        evaluation_of_files(translator, one, tmp_path / "none")
    with pytest.raises(DataError, match="one:1"):
        evaluation_of_files(classifier, one)
    unknown = file("unknown.tsv", "storm\twind\n")
    with pytest.raises(UserError, match="does not know: storm"):
        evaluation_of_files(classifier, unknown)


def test_what_is_no_predictor():
    with pytest.raises(TypeError, match="Received: <function"):
        evaluation_of_files(lambda texts: texts, "source", "reference")
