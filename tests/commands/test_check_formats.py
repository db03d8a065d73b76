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


def test_what_filters_leave_out(call, tmp_path):
    path = tmp_path / "a.tsv"
    rows = [f"Satz {n}.\tSentence {n}.\n" for n in range(20)]
    odd = ["\tempty\n", "gleich\tgleich\n", "ja\tшли люди\n", rows[3]]
    path.write_text("".join(rows + odd))

    output, _ = call("check", path, "--filter")
    assert output.splitlines()[-1] == (
        f"{path}: filters leave out 3 of 24 pairs: 1 empty, 0 longer than 1000 "
        "characters, 0 with a length ratio over 9, 0 not in the scripts any "
        "and any, 1 with a source equal to the target, 1 duplicates."
    )
    options = [
        *("--scripts", "Latin", "Latin", "--max-ratio", "1.4"),
        *("--max-characters", "11"),
    ]
    output, _ = call("check", path, "--filter", *options)
    assert output.splitlines()[-1] == (
        f"{path}: filters leave out 24 of 24 pairs: 1 empty, 10 longer than 11 "
        "characters, 12 with a length ratio over 1.4, 0 not in the scripts "
        "Latin and Latin, 1 with a source equal to the target, 0 duplicates."
    )
    output, _ = call("check", path, "--filter", "--scripts", "any", "Latin")
    assert "1 not in the scripts any and Latin" in output
    for given, message in (
        (["--scripts", "any", "Latin"], "--scripts is for --filter."),
        (["--max-ratio", "2"], "--max-ratio is for --filter."),
        (["--filter", "--documents"], "--filter is for pairs of sentences."),
        (["--filter", "--scripts", "any", "Elvish"], "Received: 'Elvish'"),
    ):
        _, notes = call("check", path, *given, code=2)
        assert message in notes
