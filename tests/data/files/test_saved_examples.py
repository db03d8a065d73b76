import tracemalloc

import pytest

from kseq.data import DataError
from kseq.data.files.saved_examples import (
    numbered_texts,
    open_examples,
    save_examples,
)

pytestmark = pytest.mark.usefixtures("here")

# Longer than what is read at once.
NAMES = [f"{number}.wav" for number in range(3000)]
TEXTS = [f"text ü {number % 7}" * (number % 3) for number in range(3000)]


def opened(names=NAMES, texts=TEXTS, **options):
    save_examples("part", names, texts, range(len(names)))
    return open_examples("part", len(names), **options)


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": [0, 2]},
        {"numbers": [-1, 0]},
        {"numbers": [0]},
        {"texts": []},
    ],
)
def test_files_that_do_not_fit_each_other(changes):
    parts = {"names": ["a", "b"], "texts": ["x", "y"], "numbers": [0, 1]}
    save_examples("part", **parts | changes)
    with pytest.raises(DataError, match="part is broken: its files do not"):
        open_examples("part", 2)


def test_rows_are_those_that_were_saved():
    names, texts, numbers, media = opened()
    assert (len(names), [*names], [*texts]) == (3000, NAMES, TEXTS)
    assert numbers.tolist() == [*range(3000)]
    assert media is None
    for place in (0, 1, 1023, 1024, 2999, -1):
        assert (names[place], texts[place]) == (NAMES[place], TEXTS[place])
    assert texts[1022:1027] == TEXTS[1022:1027]
    with pytest.raises(IndexError):
        texts[3000]


def test_names_that_are_not_utf_8_and_a_single_empty_text():
    name = b"\xff.wav".decode(errors="surrogateescape")
    names, texts, _, _ = opened([name], [""])
    assert ([*names], [*texts], texts[0]) == ([name], [""], "")


def test_each_of_several_texts_has_the_number_of_its_picture():
    _, captions, numbers, _ = opened(
        decode=lambda row: row.decode().split(" ü ")
    )
    pairs = numbered_texts(numbers, captions).as_numpy_iterator()
    expected = [
        (str(number).encode(), caption.encode())
        for number, text in enumerate(TEXTS)
        for caption in text.split(" ü ")
    ]
    assert [*pairs] == expected


def test_rows_take_no_memory_for_their_texts():
    texts = [f"{number} {'x' * 300}" for number in range(20_000)]
    save_examples("part", texts, texts, range(20_000))
    tracemalloc.start()
    _, saved, _, _ = open_examples("part", 20_000)
    assert all(map(str.__eq__, saved, texts))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, texts)) > 4 * most
