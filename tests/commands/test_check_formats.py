"""`kseq check` on data of other programs."""

from pathlib import Path

import tests.data.files.test_arrow_records

SAVED = Path(tests.data.files.test_arrow_records.__file__).with_name(
    "saved_dataset"
)


def test_a_data_set_that_was_saved(call):
    columns = ["--columns", "translation.de", "translation.en"]
    output, _ = call("check", SAVED, *columns)
    assert "Training pairs: 5 (" in output
    for option, fact in (
        ("--documents", "Labels: 2"),
        ("--tags", "Tags: 2"),
        ("--dialogues", "Training dialogues: 5, 10 answers"),
    ):
        output, _ = call("check", SAVED, option)
        assert fact in output
