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


def test_folders_of_text(call, tmp_path):
    for label in ("good", "bad"):
        (tmp_path / "train" / label).mkdir(parents=True)
        for n in range(10):
            path = tmp_path / "train" / label / f"{n}.txt"
            path.write_text(f"{label} text {n}\n")
    path = tmp_path / "train"
    output, _ = call("check", path, "--documents")
    assert "Labels: 2" in output
    output, _ = call("check", path, "--text")
    assert "in 19 documents" in output
