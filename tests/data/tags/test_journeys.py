from collections import Counter, defaultdict

from kseq.data.tags.journeys import SIZES, journeys


def test_splits_share_no_sentence():
    splits = [journeys(split) for split in SIZES]
    assert [len(split.texts) for split in splits] == [*SIZES.values()]
    texts = [text for split in splits for text in split.texts]
    assert len({*texts}) == len(texts)
    assert splits[1] == journeys("validation")
    assert splits[1] != journeys("validation", seed=1)


def test_each_word_has_a_tag_of_the_scheme():
    sentences = journeys("train", size=500)
    for text, tags in zip(*sentences, strict=True):
        words = text.split(" ")
        assert len(words) == len(tags)
        for place, tag in enumerate(tags):
            if tag.startswith("I-"):
                assert tags[place - 1][2:] == tag[2:]
        assert tags.count("B-from") <= 1
        assert tags.count("B-to") == 1


def test_words_alone_do_not_tell():
    """The same city is where one goes, starts, changes, or never comes."""
    found = defaultdict(Counter)
    for text, tags in zip(*journeys("train"), strict=True):
        for word, tag in zip(text.split(" "), tags, strict=True):
            found[word][tag] += 1
    for kind in ("from", "to", "via", "who"):
        assert found["Paris"][f"B-{kind}"] > 50
    assert found["Paris"]["O"] > 20
    assert found["York"].keys() >= {"B-to", "I-to"}

    best = {word: counts.most_common(1)[0][0] for word, counts in found.items()}
    test = journeys("test")
    hits = [
        [best[word] == t for word, t in zip(text.split(" "), tags, strict=True)]
        for text, tags in zip(*test, strict=True)
    ]
    words = [hit for row in hits for hit in row]
    assert 0.7 < sum(words) / len(words) < 0.85
    assert sum(map(all, hits)) / len(hits) < 0.05
