import importlib

import pytest

from kseq.data.running_text.brackets import SIZES, are_matched, brackets


def test_documents_match_and_are_all_different(monkeypatch):
    # Those of a split are drawn after all of the splits before it.
    module = importlib.import_module("kseq.data.running_text.brackets")
    monkeypatch.setattr(module, "SIZES", dict.fromkeys(SIZES, 500))
    splits = {split: brackets(split) for split in SIZES}
    texts = [text for texts in splits.values() for text in texts]
    assert all(map(are_matched, texts))
    assert len({*texts}) == len(texts) == 1500
    assert {len(text) for text in texts} == {*range(4, 33, 2)}
    assert {*"".join(texts)} == {*"()[]{}<>"}


def test_splits_do_not_depend_on_sizes():
    assert brackets("train", 3) == brackets("train", 9)[:3]
    assert brackets("train", 3, seed=1) != brackets("train", 3)


@pytest.mark.parametrize("text", ["()", "[]{}", "<([{}])>", "()<>" * 9])
def test_are_matched(text):
    assert are_matched(text)
    for place in range(len(text)):
        assert not are_matched(text[:place] + text[place + 1 :])
    assert not are_matched(text + "a")
    assert not are_matched(text[::-1])


def test_nothing_is_not_matched():
    assert not are_matched("")
    assert not are_matched("([)]")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="tests"):
        brackets("tests")
    with pytest.raises(ValueError, match=str(SIZES["test"] + 1)):
        brackets("test", SIZES["test"] + 1)
