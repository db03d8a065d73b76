import functools
import logging
import math
import sys

import pytest

from kseq.data import DataError, dates, read_corpus
from tests.slow import slow


def strings(dataset):
    blocks = dataset.batch(1024).as_numpy_iterator()
    return [pair for block in blocks for pair in zip(*block, strict=True)]


def table(pairs):
    return "".join(f"{s}\t{t}\n" for s, t in pairs).encode()


def numbered(count, sources):
    """Pairs that are all different, of some sources in turn."""
    return [(f"s{n % sources}", f"t{n}") for n in range(count)]


@pytest.mark.parametrize(
    ("count", "sources", "held_out"),
    [
        (2, 2, 1),
        (41, 2, 20),  # no source has fewer
        *(slow(40, 20, 4), slow(3, 2, 1), slow(9, 9, 1), slow(40, 40, 4)),
        *(slow(12_000, 3_000, 1000), slow(12_000, 12_000, 1000)),
    ],
)
def test_whole_sources_are_held_out(write, count, sources, held_out):
    pairs = numbered(count, sources)
    path = write("a.tsv", table(pairs))

    corpus = read_corpus([path])

    train, validation = map(strings, (corpus.train, corpus.validation))
    assert len(validation) == held_out
    assert strings(corpus.test) == validation
    assert not {source for source, _ in train} & {s for s, _ in validation}
    # Nothing is lost, and the order of the file stays.
    rows = [tuple(map(str.encode, pair)) for pair in pairs]
    held = set(validation)
    assert train == [pair for pair in rows if pair not in held]
    assert validation == [pair for pair in rows if pair in held]
    assert strings(read_corpus([path]).validation) == validation


def test_space_around_a_source_does_not_make_another(write):
    lines = b"".join(
        b"%d\tx\n %d \ty\r\n%d\r\tz\n" % (n, n, n) for n in range(99)
    )
    corpus = read_corpus([write("a.tsv", lines)])

    def sources(pairs):
        return {source.strip() for source, _ in strings(pairs)}

    assert len(strings(corpus.validation)) == 27
    assert not sources(corpus.train) & sources(corpus.validation)


@pytest.mark.parametrize("lines", [b"a\tb\n", b"a\tb\n a\tc\na\td\n\te\n"])
def test_one_source_cannot_be_split(write, lines):
    path = write("a.tsv", lines)

    with pytest.raises(DataError, match=r"a\.tsv: no pair .* only one source"):
        read_corpus([path])
    assert strings(read_corpus([path], [path]).train)[0] == (b"a", b"b")


def test_unusable_pairs_are_left_out_everywhere(write, caplog):
    long = b"lang " * 20_000
    lines = b"".join(b"s%d\tt%d\n" % (n, n) for n in range(20))
    bad = b"\n\tblank\n" + long + b"\tlong\nx\t" + long + b"\n"
    mixed, clean = write("a.tsv", bad + lines), write("b.tsv", lines)

    for corpus in (read_corpus([mixed]), read_corpus([clean], [mixed])):
        for pairs in (corpus.train, corpus.validation, corpus.test):
            assert all(0 < len(s) < 9 and len(t) < 9 for s, t in strings(pairs))
        assert len(strings(corpus.train)) >= 18
    assert caplog.text.count("4 of 24 pairs are left out: 2 with a blank") == 2


def test_the_numbers_are_logged_once(write, caplog):
    caplog.set_level(logging.INFO)
    train = write("a.tsv", b"a\t1\nb\t2\n a\t1 \n\t3\nc\xff\t4\n")
    held_out = write("b.tsv", b"x\t1\na \t2\nb\t3\nb\t9\n")

    corpus = read_corpus([train], [held_out])

    assert caplog.messages == corpus.describe()
    assert corpus.describe() == [
        f"Training pairs: 4 ({train})",
        f"Validation pairs: 4 ({held_out})",
        "Validation examples: 3, with all targets of a source as references",
        "Duplicate pairs: 1 of 4",
        f"{train}: 1 of 5 pairs are left out: 1 with a blank side, 0 with a "
        "line over 65536 bytes.",
        f"{train}: 1 of 5 pairs are not valid UTF-8; invalid bytes become "
        "U+FFFD.",
        "3 of 4 validation sources are also in training: scores on them will "
        "be too high.",
    ]
    caplog.clear()
    read_corpus([train], log=False)
    assert caplog.text == ""


def test_targets_of_a_source_are_its_references(write):
    train = write("a.tsv", table(numbered(40, 20)))
    corpus = read_corpus([train])

    examples = corpus.examples("validation")
    assert [source for source, _ in examples] == [
        source.decode() for source, _ in strings(corpus.validation)[:2]
    ]
    for source, references in examples:
        number = int(source[1:])
        assert references == [f"t{number}", f"t{number + 20}"]
    assert corpus.examples("test") == examples
    assert corpus.describe()[2].startswith("Validation examples: 2, with all ")


def test_lines_of_two_files_are_an_example_each(write):
    train = write("a.tsv", b"a\tb\n")
    files = [write("v.de", b"x\nx\n"), write("v.en", b"y\nz\n")]
    for held_out in (files, [*files, train]):
        corpus = read_corpus([train], held_out)
        assert corpus.examples("validation") is corpus.validation
        assert "references" not in " ".join(corpus.describe())


def test_lines_of_one_side(write):
    train = write("a.tsv", b"a\tb\nc\td\n")
    corpus = read_corpus([train], [train])
    assert list(corpus.lines()) == [b"a", b"c", b"b", b"d"]
    assert list(corpus.lines(["source"])) == [b"a", b"c"]
    assert list(corpus.lines(["target"])) == [b"b", b"d"]


def test_problems_are_warnings(write, caplog):
    read_corpus([write("a.tsv", b"a\t1\nb\t2\n\t3\n")])

    levels = {record.levelno for record in caplog.records}
    assert levels <= {logging.INFO, logging.WARNING}
    assert "1 of 3 pairs are left out" in caplog.text


def test_several_corpora_are_read_in_turn(write):
    files = [
        write("a.tsv", b"a\tA\n"),
        write("b.de", b"b\n"),
        write("b.en", b"B\n"),
        write("c.csv", b"c,C\n"),
        write("d.jsonl", b'{"target": "D", "source": "d"}\n'),
    ]
    held_out = [write("v.de", b"v\n"), write("v.en", b"V\n"), files[0]]

    corpus = read_corpus(files, held_out)

    expected = [(s.encode(), s.upper().encode()) for s in "abcd"]
    assert strings(corpus.train) == expected
    assert [strings(part) for part in corpus.parts] == [[p] for p in expected]
    assert strings(corpus.validation) == [(b"v", b"V"), (b"a", b"A")]


@pytest.mark.slow
def test_two_swapped_columns_turn_the_direction(write):
    files = [
        write("a.tsv", b"id\ten\tde\n1\tGo.\tLos.\n"),
        write("b.csv", b'de,en\n"Ja, ja.",Yes.\n'),
        write("c.jsonl", b'{"en": "No.", "de": "Nein."}\n'),
        write("d.de", b"Ha\n"),
        write("d.en", b"Ho\n"),
    ]
    english = [b"Go.", b"Yes.", b"No."]
    german = [b"Los.", b"Ja, ja.", b"Nein."]

    corpus = read_corpus(files, files[:3], columns=("en", "de"))
    other = read_corpus(files, files[:3], columns=("de", "en"))

    rest = [(b"Ha", b"Ho")]
    assert strings(corpus.train) == [*zip(english, german, strict=True), *rest]
    assert strings(other.train) == [*zip(german, english, strict=True), *rest]
    assert strings(other.test) == list(zip(german, english, strict=True))


def test_a_share_of_draws_for_each_corpus(write):
    small = write("a.tsv", table([("a", "A")] * 200))
    large = write("b.tsv", table((f"b{n}", "B") for n in range(500)))
    corpus = read_corpus([small, large], [small], weights=(3, 1))

    assert len(strings(corpus.train)) == 700  # as the tokenizer reads them
    assert list(map(len, map(strings, corpus.parts))) == [200, 500]
    assert corpus.weights == (0.75, 0.25)


@pytest.mark.parametrize(
    "weights",
    [(1,), (1, 2, 3), (0, 1), (-1, 1), (math.nan, 1), (math.inf, 1)],
)
def test_wrong_weights_are_one_message(write, weights):
    path = write("a.tsv", b"a\tb\n")

    with pytest.raises(DataError, match=r"one number above 0 .*Received: "):
        read_corpus([path, path], weights=weights)


@pytest.mark.slow
def test_extreme_weights_are_shares(write):
    path = write("a.tsv", b"a\tb\n")
    for weights in ((1e308, 1e308), (1e-320, 1)):
        corpus = read_corpus([path, path], [path], weights=weights)
        assert sum(corpus.weights) == 1
        assert min(corpus.weights) >= 0


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

    assert "2 of 2 validation sources" in caplog.text


def test_files_are_checked(write):
    one, two = write("one", b"1\n"), write("two", b"1\n2\n")

    with pytest.raises(DataError, match="same number of lines"):
        read_corpus([one, two])
    with pytest.raises(DataError, match="same number of lines"):
        read_corpus([one, one], [one, two])
    with pytest.raises(DataError, match=r"one has no target"):
        read_corpus([one, one, one])


def test_without_files_it_is_the_dates(monkeypatch):
    module = sys.modules["kseq.data.text.corpus"]
    monkeypatch.setattr(module, "dates", functools.partial(dates, size=50))
    corpus = read_corpus()

    source, target = next(corpus.test.as_numpy_iterator())
    assert source.decode()
    assert len(target) == len(b"2024-03-05")


def test_options_of_files_need_files():
    for options in (
        {"validation": ["a.tsv"]},
        {"columns": ("a", "b")},
        {"weights": (1,)},
    ):
        with pytest.raises(DataError, match=f"{next(iter(options))} needs"):
            read_corpus(**options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "train expects paths; found none"),
        (([""],), "train expects paths; found an empty one"),
        ((["a.tsv"], []), "validation expects paths; found none"),
        ((["a.tsv"], ["a.tsv", ""]), "validation expects paths; found an em"),
        ((["a.de", "a.tsv"],), r"a\.de has no target"),
        ((["a.tsv", "a.de"],), r"a\.de has no target"),
        ((["a.tsv"], None, ("a",)), "columns takes two different names"),
        ((["a.tsv"], None, ("a", "a")), "columns takes two different names"),
        ((["a.tsv"], None, ("a", "")), "columns takes two different names"),
        ((["a.tsv"], None, (*"abcd",)), "columns takes two different"),
        ((["a.de", "a.en"], None, ("2", "1")), "columns is for tables; a.de "),
        ((["a\0b", "c"],), "There is no file 'a"),
    ],
)
def test_wrong_options_are_one_message(arguments, message):
    with pytest.raises(DataError, match=message):
        read_corpus(*arguments)


def test_validation_is_looked_at_before_training_is_read(write, tmp_path):
    train = write("a.tsv", b"not a table\n")

    with pytest.raises(DataError, match=r"no file .*missing"):
        read_corpus([train], [tmp_path / "missing"])


def test_a_file_name_of_two_lines_is_shown_in_one(write, caplog):
    caplog.set_level(logging.INFO)
    path = write("a\nb\x1b.tsv", b"a\tb\nc\td\n\te\n")

    corpus = read_corpus([path])
    for line in corpus.describe() + caplog.messages:
        assert "\n" not in line and "\x1b" not in line
    with pytest.raises(DataError) as error:
        read_corpus([path], columns=("x", "y"))
    assert r"a\nb\x1b.tsv:1" in str(error.value)
