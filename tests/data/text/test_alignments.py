import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import (
    DataError,
    LineFilters,
    PairTokenizers,
    TextPreprocessor,
    Tokenizer,
    open_prepared,
    prepare_pairs,
    read_corpus,
    training_batches,
)
from kseq.data.text.alignments import align_pieces
from kseq.data.text.pair_parts import tokenize_part
from kseq.data.text.pair_table import PairTable
from kseq.user_error import ArgumentError

pytestmark = pytest.mark.usefixtures("here")

COLUMNS = ("source", "target", "links")
TEXTS = [
    b"a rose is a rose",
    b"  two  spaces ",
    b"10\xc2\xa0000 \xe3\x80\x80x",  # white space of all kinds
    "Größe ☃☃ ☃".encode(),  # unknown to characters and words
    b"c\rd \xffe \xef\xb7\x90f",
    b"",
]


@pytest.fixture(scope="module")
def tokenizers():
    lines = ["a rose is a rose", "two spaces x", "one two three four five"] * 3
    return {
        kind: Tokenizer.train(lines, size, kind)
        for kind, size in (
            *(("bpe", 280), ("unigram", 280)),
            *(("char", 40), ("word", 40)),
        )
    }


def test_each_piece_of_a_word_has_one_of_its_first_source_word():
    source, target = [0, 0, 1, 2, 2, 2], [0, 0, 0, 1, 2, 2]
    assert align_pieces(b"", source, target) == [0] * 6
    assert align_pieces(b"0-0 1-1 2-2", source, target) == [1, 2, 2, 3, 4, 5]
    assert align_pieces(b" 2-1\t1-1 2-1 ", source, target)[3:] == [3, 0, 0]
    assert align_pieces(b"5-0", source, target) == [0] * 6  # without a piece
    far = [*range(70_000)]
    assert align_pieces(b"65534-0 65535-1", far, [0, 1]) == [65_535, 0]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
def test_words_of_pieces(tokenizers, kind):
    tokenizer = tokenizers[kind]
    found = tokenizer.words_of_pieces(TEXTS)
    _, lengths = tokenizer.encode_with_end(TEXTS)
    assert [len(words) + 1 for words in found] == lengths.tolist()
    for text, words in zip(TEXTS, found, strict=True):
        assert words == sorted(words)
        count = len(text.replace(b"\r", b"").decode(errors="replace").split())
        assert len({*words}) <= count
        if kind in ("bpe", "unigram"):  # others join what they do not know
            assert {*words} == {*range(count)}
    if kind == "char":
        assert found[1] == [0] * 4 + [1] * 8
    if kind == "word":
        assert found[0] == [0, 1, 2, 3, 4]


def write(path, rows):
    """A table of sources, targets and links."""
    if path.endswith("jsonl"):
        lines = [
            json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows
        ]
    else:
        lines = ["\t".join(row) for row in [COLUMNS, *rows]]
    with open(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def rows(count):
    """Sources that are numbered, and targets of them in reverse."""
    words = ["one", "two", "three", "four", "five"]
    found = []
    for n in range(count):
        source = [words[(n + k) % 5] for k in range(2 + n % 3)] + [f"{n // 2}"]
        last = len(source) - 1
        links = [f"{last - k}-{k}" for k in range(last + 1) if k != n % 4]
        found.append((" ".join(source), " ".join(source[::-1]), links))
    return [(s, t, " ".join(links[::-1])) for s, t, links in found]


def check(prepared, given):
    """Each row has the alignment of its own text."""
    expected = {}
    for *pair, links in given:
        ids, words = [], []
        for tokenizer, text in zip(prepared.tokenizers, pair, strict=True):
            ids.append(tuple(tokenizer.encode_with_end([text.encode()])[0]))
            words += tokenizer.words_of_pieces([text.encode()])
        expected[*ids] = [*align_pieces(links.encode(), *words), 0]
    assert len(prepared.alignment) == len(prepared.target) > 20
    for number in range(len(prepared.alignment)):
        found = prepared.alignment[number]
        ids = prepared.source[number], prepared.target[number]
        assert found.tolist() == expected[*map(tuple, ids)]
        assert any(found)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_alignments_stay_beside_their_pairs(tokenizers, name, monkeypatch):
    """With blank pairs and duplicates, parts, filters, and after a stop."""
    given = rows(60)
    tables = [
        write(name, [*given[:30], ("", "x", "")]),
        write(f"b{name[1:]}", [given[3], *given[30:]]),
    ]
    kept = PairTokenizers(kept=(tokenizers["bpe"], tokenizers["char"]))
    options = {"tokenizers": kept, "filters": LineFilters(), "log": False}

    def stop(job):
        if "/001-" in job.part:
            raise KeyboardInterrupt
        return tokenize_part(job)

    with monkeypatch.context() as patch:
        module = sys.modules["kseq.data.text.prepare_pairs"]
        patch.setattr(module, "tokenize_part", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare_pairs("out", tables, None, COLUMNS, **options)
    prepared = prepare_pairs("out", tables, None, COLUMNS, **options)
    check(prepared, given)
    assert open_prepared("out").alignment.values.dtype == np.uint16
    whole = prepare_pairs("whole", tables, None, COLUMNS, **options)
    assert whole.alignment.values.tolist() == prepared.alignment.values.tolist()
    with pytest.raises(DataError, match="different options: columns was"):
        prepare_pairs("whole", tables, None, COLUMNS[:2], **options)

    plain = prepare_pairs("two", tables, None, COLUMNS[:2], **options)
    assert plain.alignment is None
    assert plain.target.values.tolist() == prepared.target.values.tolist()
    assert plain.facts == prepared.facts


def test_batches(tokenizers):
    table = write("a.tsv", given := rows(60))
    validation = write("v.tsv", [(*row[:2], "no links") for row in given[:2]])
    both = (tokenizers["bpe"],) * 2
    kept = PairTokenizers(kept=both)
    prepared = prepare_pairs(
        *("out", [table], [validation], COLUMNS), tokenizers=kept, log=False
    )
    assert prepared.counts == (60,)
    pairs = prepared.tokenized(TextPreprocessor(both[0]))
    options = {"batch_tokens": 90, "max_length": 30, "seed": 1}
    batches = training_batches(pairs, with_alignment=True, **options)
    plain = training_batches(pairs, **options)
    of_pair = {
        tuple(prepared.target[n]): prepared.alignment[n].tolist()
        for n in range(60)
    }
    for one, other in zip(batches.take(5), plain.take(5), strict=True):
        alignment = one[0].pop("alignment")
        assert alignment.dtype == "int32"
        assert alignment.shape == one[1].shape
        for ids, found in zip(one[1].numpy(), alignment.numpy(), strict=True):
            ids, rest = ids[ids > 0], found[np.count_nonzero(ids) :]
            assert found[: len(ids)].tolist() == of_pair[tuple(ids)]
            assert not rest.any()
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)

    with pytest.raises(ArgumentError, match="pieces, but not their alignment"):
        training_batches(
            pairs, with_alignment=True, subword_dropout=0.1, **options
        )
    without = read_corpus(["out"], log=False)
    assert without.alignment is not None
    prepare_pairs("no", [table], None, COLUMNS[:2], tokenizers=kept, log=False)
    pairs = open_prepared("no").tokenized(TextPreprocessor(both[0]))
    with pytest.raises(DataError, match=r"third column, --columns SOURCE TARG"):
        training_batches(pairs, with_alignment=True, **options)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-0 1-0 2-1", None),
        ("", None),
        (" ", None),
        ("0-0 0-0", None),
        ("3-0", "links, counted from 0-0, of 3 source words and 2 target"),
        ("0-2", "of 3 source words and 2 target words; found 0-2"),
        ("0-0 1", "an alignment, as in 0-0 1-2; found '1'"),
        ("0 - 0", "an alignment, as in 0-0 1-2; found '0'"),
        ("-1-0", "an alignment"),
        ("0-0:0.5", "an alignment"),
        ("0,0", "an alignment"),
        ("nan-0", "an alignment"),
        ("0-" + "9" * 9, "2 target words; found 0-999999999"),
        ("0-" + "9" * 9000, "an alignment, as in 0-0 1-2; found '0-999"),
        ("٣-0", "an alignment"),
    ],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_wrong_links_are_named_with_their_line(links, message, name):
    table = write(name, [("a", "b", "0-0"), ("a b\r  c", "d e", links)])
    if message is None:
        assert len([*PairTable(table, COLUMNS).rows()]) == 2
        return
    number = 2 if name.endswith("jsonl") else 3
    with pytest.raises(DataError, match=f"{name}:{number}: ") as caught:
        read_corpus([table], columns=COLUMNS, log=False)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


def test_several_targets_have_an_alignment_each():
    def table(links):
        row = {"source": ["a", "b c"], "target": ["d", "e f"], "links": links}
        with open("a.jsonl", "w") as file:
            file.write(json.dumps(row))
        found = PairTable("a.jsonl", COLUMNS).rows()
        return [[side.text for side in sides] for sides in found]

    assert table(["2-0", ""]) == [
        [b"a b c", b"d", b"2-0"],
        [b"a b c", b"e f", b""],
    ]
    with pytest.raises(
        DataError, match=r"1: expected an alignment for each of"
    ):
        table(["0-0"])
    with pytest.raises(DataError, match=r"a string at 'links'"):
        table(None)
    with pytest.raises(DataError, match=r"1: expected links"):
        table(["0-0", "0-2"])


def test_wrong_columns():
    table = write("a.tsv", rows(30))
    for side in ("a.de", "a.en"):
        with open(side, "w") as file:
            file.write("a\nb\n")
    files = ["a.de", "a.en"]
    for paths, columns, message in (
        (
            [table],
            ("source", "target", "no"),
            "and 'no'; found 3 columns.*three",
        ),
        ([table], ("source", "target", "target"), "takes two different"),
        ([table], ("source", "target", ""), "takes two different"),
        ([table], ("1", "2", "3", "4"), "perhaps that of alignments"),
        ([table], ("1", "2", "4"), "the columns '1' and '2' and '4'"),
        ([table, *files], COLUMNS, r"a\.de and a\.en are two files.*paste"),
        (files, COLUMNS, "columns is for tables"),
    ):
        with pytest.raises(DataError, match=message):
            read_corpus(paths, columns=columns, log=False)
