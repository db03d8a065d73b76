import datetime
import hashlib
import importlib
import re
from collections import defaultdict

import pytest

from kseq.data.text.dates import SIZES, dates

# By this name, the package has the function.
MODULE = importlib.import_module("kseq.data.text.dates")


@pytest.fixture(scope="module")
def splits():
    return {split: dates(split) for split in SIZES}


def test_splits_have_their_sizes_and_share_no_date(splits):
    targets = {split: set(pairs[1]) for split, pairs in splits.items()}

    for split, size in SIZES.items():
        assert len(splits[split][0]) == len(targets[split]) == size
    assert len(set().union(*targets.values())) == sum(SIZES.values())


def test_targets_are_iso_dates_of_two_centuries(splits):
    for _, targets in splits.values():
        years = {datetime.date.fromisoformat(date).year for date in targets}
        assert years <= set(range(1900, 2100))


def test_no_string_is_two_dates(splits):
    meanings = defaultdict(set)
    for sources, targets in splits.values():
        for source, target in zip(sources, targets, strict=True):
            meanings[source].add(target)

    assert {len(found) for found in meanings.values()} == {1}


def test_a_name_of_two_months_is_left_out(monkeypatch):
    # Nyakanga is September in Kirundi and July in Kinyarwanda.
    months = {
        "rn": "Nzero Ruhuhuma Ntwarante Ndamukiza Rusama Ruheshi Mukakaro "
        "Nyandagaro Nyakanga Gitugutu Munyonyo Kigarama",
        "rw": "Mutarama Gashyantare Werurwe Mata Gicurasi Kamena Nyakanga "
        "Kanama Nzeri Ukwakira Ugushyingo Ukuboza",
    }
    words = {
        language: {
            "patterns": ["{day} {month} {year}"],
            "months": {"month": names.split()},
            "weekdays": {},
        }
        for language, names in months.items()
    }
    monkeypatch.setattr(MODULE, "_words", lambda: words)
    writings = MODULE._writings_of_month.__wrapped__()

    def written(month, language):
        date = datetime.date(2010, month, 15)
        return [writing(date) for writing in writings[month][language]]

    assert "15 Nyakanga 2010" not in written(9, "rn") + written(7, "rw")
    assert "15 Mutarama 2010" in written(1, "rw")


def test_months_are_named_or_marked(splits):
    for source in splits["train"][0]:
        assert re.search(r"[^\W\d_]", source), source
        assert not re.search(r"\d[./-] ?\d+[./-] ?\d", source), source


def test_every_language_writes_every_month():
    languages = MODULE._words()
    assert len({language[:2] for language in languages}) >= 25
    for writings in MODULE._writings_of_month().values():
        assert all(writings[language] for language in languages)


def test_the_corpus_is_the_one_that_scores_were_measured_on(splits):
    digests = {
        split: hashlib.sha256(
            "\n".join(map("\t".join, zip(*pairs, strict=True))).encode()
        ).hexdigest()[:16]
        for split, pairs in splits.items()
    }

    assert digests == {
        "train": "56c1dbc79f7eef44",
        "validation": "3ed530f1a29fd9ff",
        "test": "62500d2da413e840",
    }


def test_dates_are_what_they_say():
    written = set()
    for language in ("en", "de", "ja"):
        for writing in MODULE._writings(language):
            written.add(writing(datetime.date(2024, 3, 5)))

    assert written >= {
        "Tuesday, March 5, 2024",
        "Mar 5, 2024",
        "Dienstag, 5. März 2024",
        "2024年3月5日",
    }


def test_the_seed_decides():
    # Which dates one seed gives in any process, the docstring shows.
    assert dates("test", size=50, seed=7) == dates("test", size=50, seed=7)
    assert dates("test", size=50, seed=7) != dates("test", size=50, seed=8)


def test_a_smaller_size_is_a_beginning(splits):
    sources, targets = dates("validation", size=20)

    assert sources == splits["validation"][0][:20]
    assert targets == splits["validation"][1][:20]


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="Received: split='dev'"):
        dates("dev")
    for size in (0, 1001):
        with pytest.raises(ValueError, match=f"Received: size={size}"):
            dates("test", size=size)
